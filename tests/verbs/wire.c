/* wire.c: datagrams of queue pairs in UDP datagrams. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "emulated.h"

#define MAGIC 0x5645
#define MAX_SEGMENTS 60
#define MAX_BYTES 65000
#define SOCKET_BYTES (8 << 20)

/* In front of each datagram. */
struct wire_header {
    uint16_t magic, partition;
    uint32_t key, sender, group;
};
_Static_assert(sizeof(struct wire_header) == WIRE_HEADER_BYTES, "no padding");

static uint32_t digest(const uint8_t *group) {
    uint32_t digest = 2166136261U;
    for (int at = 0; at < 16; at++) {
        digest = (digest ^ group[at]) * 16777619U;
    }
    return digest;
}

void emulated_write_header(struct emulated_qp *pair, unsigned char *place, uint32_t key) {
    struct wire_header header = {MAGIC, pair->partition, key, pair->qp.qp_num, digest(pair->group)};
    memcpy(place, &header, sizeof header);
}

static void enable(int socket, int level, int name, int value) {
    (void)setsockopt(socket, level, name, &value, sizeof value);
}

int emulated_attach(struct emulated_qp *pair, const union ibv_gid *group, struct in_addr address) {
    memcpy(pair->group, group->raw, 16);
    pair->address = address;
    uint32_t number = digest(pair->group);
    if (pair->socket == -1) {
        pair->socket = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (pair->socket == -1) {
            return errno;
        }
        pair->to = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)(33000 + number % 20000)),
                                        .sin_addr.s_addr = htonl(0xeffe0000U | (number >> 16))};
        /* All members on a host receive. */
        enable(pair->socket, SOL_SOCKET, SO_REUSEADDR, 1);
        enable(pair->socket, SOL_SOCKET, SO_RCVBUF, SOCKET_BYTES);
        enable(pair->socket, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BYTES);
        enable(pair->socket, IPPROTO_UDP, UDP_GRO, 1);
        enable(pair->socket, IPPROTO_IP, IP_MULTICAST_ALL, 0);
        /* Its own come back. */
        enable(pair->socket, IPPROTO_IP, IP_MULTICAST_LOOP, 1);
        (void)setsockopt(pair->socket, IPPROTO_IP, IP_MULTICAST_IF, &address, sizeof address);
        if (bind(pair->socket, (struct sockaddr *)&pair->to, sizeof pair->to) != 0) {
            return errno;
        }
        struct ip_mreq membership = {pair->to.sin_addr, address};
        if (setsockopt(pair->socket, IPPROTO_IP, IP_ADD_MEMBERSHIP, &membership, sizeof membership) != 0) {
            return errno;
        }
    }
    pair->is_member = true;
    return 0;
}

void emulated_detach(struct emulated_qp *pair) {
    if (pair->socket != -1) {
        close(pair->socket);
    }
    pair->socket = -1;
    pair->is_member = false;
}

static void end_membership(struct emulated_qp *pair) {
    pair->is_member = false;
    if (pair->lost != NULL) {
        pair->lost(pair->of, -ENETRESET);
    }
}

/* What stands before a datagram: the global routing header, or, with RoCE over IPv4, 20 bytes of anything and the header of IP. */
static void write_routing_header(const struct emulated_qp *pair, unsigned char *place, struct in_addr from) {
    if (emulated_settings()->is_infiniband) {
        memset(place, 0, ROUTING_HEADER_BYTES);
        place[0] = 0x60;
        place[8] = 0xfe;
        place[9] = 0x80;
        memcpy(place + 20, &from, 4);
        memcpy(place + 24, pair->group, 16);
    } else {
        memset(place, 0x65, 20);
        memset(place + 20, 0, 20);
        place[20] = 0x45;
        memcpy(place + 32, &from, 4);
        memcpy(place + 36, pair->group + 12, 4);
    }
}

/* The payload may stand where it belongs already. */
static void arrive(struct emulated_qp *pair, const struct wire_header *received, const unsigned char *bytes,
                   size_t payload, struct in_addr from) {
    const struct settings *settings = emulated_settings();
    struct wire_header header = *received;
    bool is_full = ((header.partition | pair->partition) & 0x8000) != 0;
    if (header.magic != MAGIC || header.key != pair->key || header.group != digest(pair->group) ||
        ((header.partition ^ pair->partition) & 0x7fff) != 0 || !is_full) {
        return;
    }
    pair->arrived++;
    if (pair->arrived == settings->down) {
        extern void emulated_port_down(void);
        emulated_port_down();
        end_membership(pair);
    } else if (pair->arrived == settings->unjoin) {
        end_membership(pair);
    }
    bool is_lost = pair->arrived * 7919 % 1000 < settings->lose;
    if (!pair->is_member || is_lost || pair->receives_posted == 0 || pair->qp.state == IBV_QPS_ERR) {
        return;
    }
    const struct ibv_sge *memory = &pair->receive_memory[pair->first_receive];
    struct ibv_wc completion = {
        .wr_id = pair->receives[pair->first_receive].wr_id,
        .status = IBV_WC_SUCCESS,
        .opcode = IBV_WC_RECV,
        .byte_len = (uint32_t)(ROUTING_HEADER_BYTES + payload),
        .qp_num = pair->qp.qp_num,
        .src_qp = header.sender,
        .wc_flags = IBV_WC_GRH,
    };
    pair->first_receive = (pair->first_receive + 1) % pair->cap.max_recv_wr;
    pair->receives_posted--;
    if (ROUTING_HEADER_BYTES + payload > memory->length) {
        completion.status = IBV_WC_LOC_LEN_ERR;
        emulated_complete((struct emulated_cq *)pair->qp.recv_cq, &completion);
        emulated_fail(pair);
        return;
    }
    unsigned char *place = (unsigned char *)(uintptr_t)memory->addr;
    write_routing_header(pair, place, from);
    if (bytes != place + ROUTING_HEADER_BYTES) {
        memmove(place + ROUTING_HEADER_BYTES, bytes, payload);
    }
    emulated_complete((struct emulated_cq *)pair->qp.recv_cq, &completion);
}

/* Whatever was posted has been filled by a datagram as large as can be. */
static void arrive_nothing(struct emulated_qp *pair) {
    while (pair->receives_posted > 0) {
        struct ibv_wc completion = {.wr_id = pair->receives[pair->first_receive].wr_id,
                                    .status = IBV_WC_SUCCESS,
                                    .opcode = IBV_WC_RECV,
                                    .byte_len = ROUTING_HEADER_BYTES + emulated_settings()->mtu,
                                    .wc_flags = IBV_WC_GRH};
        pair->first_receive = (pair->first_receive + 1) % pair->cap.max_recv_wr;
        pair->receives_posted--;
        emulated_complete((struct emulated_cq *)pair->qp.recv_cq, &completion);
    }
}

/* What one call receives: straight into what is posted, as long as that is enough and the datagrams are full. */
struct arrivals {
    struct iovec parts[2 * (MAX_SEGMENTS + 3) + 1];
    struct wire_header headers[MAX_SEGMENTS + 3];
    unsigned char *payloads[MAX_SEGMENTS + 3];
    unsigned char rest[1 << 16];
    unsigned char row[1 << 16];
    size_t direct, count;
};

static void aim(struct emulated_qp *pair, struct arrivals *arrivals) {
    size_t mtu = emulated_settings()->mtu, most = sizeof arrivals->rest / (WIRE_HEADER_BYTES + mtu);
    most = most < MAX_SEGMENTS + 3 ? most : MAX_SEGMENTS + 3;
    arrivals->direct = pair->receives_posted >= most ? most : 0;
    for (size_t at = 0; at < arrivals->direct; at++) {
        const struct ibv_sge *memory =
            &pair->receive_memory[(pair->first_receive + at) % pair->cap.max_recv_wr];
        if (memory->length < ROUTING_HEADER_BYTES + mtu) {
            arrivals->direct = at;
            break;
        }
        arrivals->payloads[at] = (unsigned char *)(uintptr_t)memory->addr + ROUTING_HEADER_BYTES;
        arrivals->parts[2 * at] = (struct iovec){&arrivals->headers[at], WIRE_HEADER_BYTES};
        arrivals->parts[2 * at + 1] = (struct iovec){arrivals->payloads[at], mtu};
    }
    arrivals->count = 2 * arrivals->direct;
    arrivals->parts[arrivals->count++] = (struct iovec){arrivals->rest, sizeof arrivals->rest};
}

/* Datagrams of `each` bytes; the last may be shorter. */
static void take(struct emulated_qp *pair, struct arrivals *arrivals, size_t length, size_t each,
                 struct in_addr from) {
    size_t full = WIRE_HEADER_BYTES + emulated_settings()->mtu;
    bool is_in_place = length <= arrivals->direct * full && (each == full || (length == each && each < full));
    if (!is_in_place) {
        size_t copied = 0;
        for (size_t at = 0; copied < length; at++) {
            size_t left = length - copied, size = arrivals->parts[at].iov_len;
            memcpy(arrivals->row + copied, arrivals->parts[at].iov_base, size < left ? size : left);
            copied += size < left ? size : left;
        }
    }
    for (size_t at = 0, number = 0; at < length; at += each, number++) {
        size_t size = length - at < each ? length - at : each;
        struct wire_header header;
        if (size < sizeof header) {
            continue;
        }
        memcpy(&header, is_in_place ? (void *)&arrivals->headers[number] : arrivals->row + at, sizeof header);
        const unsigned char *payload =
            is_in_place ? arrivals->payloads[number] : arrivals->row + at + sizeof header;
        arrive(pair, &header, payload, size - sizeof header, from);
    }
}

void emulated_receive(struct emulated_qp *pair) {
    static _Thread_local struct arrivals arrivals;
    if (emulated_settings()->is_null) {
        arrive_nothing(pair);
        return;
    }
    for (;;) {
        union {
            char bytes[CMSG_SPACE(sizeof(int))];
            struct cmsghdr align;
        } control;
        struct sockaddr_in from = {0};
        aim(pair, &arrivals);
        struct msghdr message = {.msg_name = &from,
                                 .msg_namelen = sizeof from,
                                 .msg_iov = arrivals.parts,
                                 .msg_iovlen = arrivals.count,
                                 .msg_control = &control,
                                 .msg_controllen = sizeof control};
        ssize_t length = recvmsg(pair->socket, &message, 0);
        if (length < 0) {
            if (errno == EINTR) {
                continue;
            }
            return;
        }
        size_t each = (size_t)length;
        for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); at != NULL; at = CMSG_NXTHDR(&message, at)) {
            if (at->cmsg_level == IPPROTO_UDP && at->cmsg_type == UDP_GRO) {
                int segment;
                memcpy(&segment, CMSG_DATA(at), sizeof segment);
                each = (size_t)segment;
            }
        }
        if (length > 0) {
            take(pair, &arrivals, (size_t)length, each, from.sin_addr);
        }
    }
}

/* The first `count` of those that wait have left, or never will. */
static void leave(struct emulated_qp *pair, uint32_t count) {
    for (; count > 0; count--) {
        const struct emulated_send *send = &pair->sends[pair->first_send];
        pair->first_send = (pair->first_send + 1) % pair->cap.max_send_wr;
        pair->sends_waiting--;
        pair->unsignaled++;
        if (send->is_signaled || send->status != IBV_WC_SUCCESS) {
            struct ibv_wc completion = {.wr_id = send->id,
                                        .status = send->status,
                                        .opcode = IBV_WC_SEND,
                                        .qp_num = pair->qp.qp_num,
                                        .vendor_err = pair->unsignaled};
            pair->unsignaled = 0;
            emulated_complete((struct emulated_cq *)pair->qp.send_cq, &completion);
            if (send->status != IBV_WC_SUCCESS) {
                emulated_fail(pair);
                return;
            }
        }
    }
}

/* Sends what the socket takes, in order. */
void emulated_flush(struct emulated_qp *pair) {
    size_t stride = WIRE_HEADER_BYTES + emulated_settings()->mtu;
    while (pair->sends_waiting > 0) {
        struct iovec parts[MAX_SEGMENTS];
        uint32_t count = 0;
        size_t bytes = 0, each = 0;
        while (count < MAX_SEGMENTS && count < pair->sends_waiting) {
            uint32_t at = (pair->first_send + count) % pair->cap.max_send_wr;
            size_t length = WIRE_HEADER_BYTES + pair->sends[at].length;
            each = count == 0 ? length : each;
            bool is_shorter = count > 0 && parts[count - 1].iov_len < each;
            if (pair->sends[at].status != IBV_WC_SUCCESS || length > each || is_shorter ||
                bytes + length > MAX_BYTES) {
                break;
            }
            parts[count++] = (struct iovec){pair->bytes + at * stride, length};
            bytes += length;
        }
        bool is_nowhere = !pair->is_member || pair->socket == -1;
        if (count == 0 || is_nowhere || !emulated_port_is_active(false)) {
            leave(pair, count == 0 ? 1 : count);
            continue;
        }
        union {
            char bytes[CMSG_SPACE(sizeof(uint16_t))];
            struct cmsghdr align;
        } control = {0};
        struct msghdr message = {
            .msg_name = &pair->to, .msg_namelen = sizeof pair->to, .msg_iov = parts, .msg_iovlen = count};
        if (count > 1) {
            message.msg_control = &control;
            message.msg_controllen = sizeof control;
            struct cmsghdr *segment = CMSG_FIRSTHDR(&message);
            segment->cmsg_level = IPPROTO_UDP;
            segment->cmsg_type = UDP_SEGMENT;
            segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
            uint16_t size = (uint16_t)each;
            memcpy(CMSG_DATA(segment), &size, sizeof size);
        }
        if (sendmsg(pair->socket, &message, 0) < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        /* What another error takes is lost, as on a wire. */
        leave(pair, count);
    }
}

/* The channel's epoll has the socket as long as a queue is armed for which it may bring something. */
void emulated_watch(struct emulated_qp *pair) {
    if (pair == NULL || pair->socket == -1) {
        return;
    }
    const struct emulated_cq *received = (struct emulated_cq *)pair->qp.recv_cq;
    const struct emulated_cq *sent = (struct emulated_cq *)pair->qp.send_cq;
    struct epoll_event event = {.events =
                                    (received->is_armed ? (uint32_t)EPOLLIN : 0) |
                                    (sent->is_armed && pair->sends_waiting > 0 ? (uint32_t)EPOLLOUT : 0)};
    int channel = pair->qp.recv_cq->channel->fd;
    if (event.events == 0) {
        (void)epoll_ctl(channel, EPOLL_CTL_DEL, pair->socket, &event);
    } else if (epoll_ctl(channel, EPOLL_CTL_MOD, pair->socket, &event) != 0) {
        (void)epoll_ctl(channel, EPOLL_CTL_ADD, pair->socket, &event);
    }
}
