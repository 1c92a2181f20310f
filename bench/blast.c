#define _GNU_SOURCE
#include "blast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    DATAGRAM_BYTES = 1472, /* a full Ethernet frame over IPv4 */
    DATAGRAMS_PER_CALL = 44,
    RECEIVE_BUFFER_BYTES = 16 << 20, /* the kernel grants net.core.rmem_max of it */
    /* Below the queue of any link that is worth measuring, so that the queue never overflows, and enough for
     * the next row of datagrams to wait while one is on the wire. */
    SEND_BUFFER_BYTES = 200 << 10,
    /* Membership reports are on their way for so long before the first datagram follows. */
    JOIN_MS = 200,
};

/* 239.192/14, the organisation-local scope (RFC 2365), with a port above those that are assigned. */
static struct sockaddr_in random_group(void) {
    uint32_t draw[2] = {0};
    if (getrandom(draw, sizeof draw, 0) != sizeof draw)
        draw[0] = (uint32_t)getpid();
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)(49152 + draw[1] % 16384)),
        .sin_addr.s_addr = htonl(0xefc00000u | (draw[0] & 0x3ffffu)),
    };
}

static bool set(int socket, int level, int name, int value) {
    return setsockopt(socket, level, name, &value, sizeof value) == 0;
}

/* Returns NULL, or what failed; errno says why. */
static const char *open_socket(struct blast *blast, const char *interface) {
    struct ip_mreqn where = {.imr_multiaddr = blast->group.sin_addr};
    if (*interface != '\0' && (where.imr_ifindex = (int)if_nametoindex(interface)) == 0)
        return "find the interface";
    blast->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (blast->socket < 0)
        return "make a UDP socket";
    const int s = blast->socket;
    /* Without SO_REUSEADDR: a second rank on the same host is refused here. */
    if (bind(s, (struct sockaddr *)&blast->group, sizeof blast->group) != 0)
        return "bind to the group: blast needs one rank per host";
    if (setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &where, sizeof where) != 0)
        return "send multicast on the interface";
    if (setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &where, sizeof where) != 0)
        return "join the group";
    if (!set(s, IPPROTO_IP, IP_MULTICAST_LOOP, 0) || !set(s, IPPROTO_IP, IP_MULTICAST_ALL, 0))
        return "keep other groups out";
    if (!set(s, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER_BYTES) ||
        !set(s, SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES))
        return "have buffers";
    if (!set(s, IPPROTO_UDP, UDP_SEGMENT, DATAGRAM_BYTES) || !set(s, IPPROTO_UDP, UDP_GRO, 1))
        return "use UDP_SEGMENT and UDP_GRO (Linux 5.0)";
    return NULL;
}

bool blast_open(struct blast *blast, const char *interface, MPI_Comm control, char *error, int error_size) {
    struct {
        int rank;
        char sentence[128];
    } own = {0}, worst;
    MPI_Comm_rank(control, &blast->rank);
    if (blast->rank == 0)
        blast->group = random_group();
    MPI_Bcast(&blast->group, sizeof blast->group, MPI_BYTE, 0, control);
    blast->socket = -1;
    const char *failed = open_socket(blast, interface);
    if (failed)
        snprintf(own.sentence, sizeof own.sentence, "%s (%s)", failed, strerror(errno));
    /* The first rank that failed speaks for all. */
    int ranks, first;
    MPI_Comm_size(control, &ranks);
    own.rank = failed ? blast->rank : ranks;
    MPI_Allreduce(&own.rank, &first, 1, MPI_INT, MPI_MIN, control);
    if (first < ranks) {
        worst = own;
        MPI_Bcast(&worst, sizeof worst, MPI_BYTE, first, control);
        snprintf(error, (size_t)error_size, "variant blast: rank %d could not %s; interface: %s", first,
                 worst.sentence, *interface != '\0' ? interface : "by the route to the group");
        blast_close(blast);
        return false;
    }
    nanosleep(&(struct timespec){.tv_nsec = JOIN_MS * 1000L * 1000L}, NULL);
    MPI_Barrier(control);
    return true;
}

void blast_close(struct blast *blast) {
    if (blast->socket >= 0)
        close(blast->socket);
    blast->socket = -1;
}

void blast_drain(struct blast *blast) {
    char byte;
    while (recv(blast->socket, &byte, sizeof byte, MSG_DONTWAIT) >= 0)
        ;
}

static bool send_all(const struct blast *blast, const unsigned char *data, size_t bytes) {
    const size_t row_bytes = (size_t)DATAGRAM_BYTES * DATAGRAMS_PER_CALL;
    size_t sent = 0;
    while (sent < bytes) {
        const size_t rest = bytes - sent;
        const ssize_t taken = sendto(blast->socket, data + sent, rest < row_bytes ? rest : row_bytes, 0,
                                     (const struct sockaddr *)&blast->group, sizeof blast->group);
        if (taken >= 0)
            sent += (size_t)taken;
        else if (errno != EINTR)
            return false;
    }
    return true;
}

/* Whether something came before `silence_ns` had passed. */
static bool wait_for_more(int socket, int64_t silence_ns) {
    struct pollfd poll_for = {.fd = socket, .events = POLLIN};
    const struct timespec limit = {.tv_sec = silence_ns / 1000000000, .tv_nsec = silence_ns % 1000000000};
    int ready;
    do
        ready = ppoll(&poll_for, 1, &limit, NULL);
    while (ready < 0 && errno == EINTR);
    return ready > 0;
}

static bool receive_all(const struct blast *blast, unsigned char *data, size_t bytes, int64_t silence_ns) {
    size_t received = 0;
    while (received < bytes) {
        const size_t room = bytes - received;
        /* MSG_TRUNC: the true length, also of what does not fit. */
        const ssize_t length = recv(blast->socket, data + received, room, MSG_DONTWAIT | MSG_TRUNC);
        if (length >= 0) {
            if ((size_t)length > room)
                return false;
            received += (size_t)length;
        } else if (errno != EINTR && (errno != EAGAIN || !wait_for_more(blast->socket, silence_ns))) {
            return false;
        }
    }
    return true;
}

bool blast_run(struct blast *blast, unsigned char *buffer, int bytes, int root, int64_t silence_ns) {
    if (blast->rank == root)
        return send_all(blast, buffer, (size_t)bytes);
    return receive_all(blast, buffer, (size_t)bytes, silence_ns);
}
