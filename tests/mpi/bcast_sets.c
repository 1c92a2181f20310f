/* Communicators over many sets of ranks. First each is freed before the next is made: neither open files nor datagram
 * sockets grow, once what the library keeps for a while has gone. Then all sets that have rank 0 live at the same time, which is more than a library can join
 * multicast groups for.
 *
 * Usage: bcast_sets [CYCLES], two communicators each, 150 by default; at most 8 ranks. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MESSAGE_BYTES = 3000, MAX_RANKS = 8, SETTLE_TRIES = 100 };

struct descriptors {
    int all, datagram;
};

static struct descriptors count_descriptors(void) {
    struct descriptors count = {0, 0};
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder, "cannot read /proc/self/fd");
    for (struct dirent *entry; (entry = readdir(folder));) {
        int type;
        socklen_t bytes = sizeof type;
        count.all++;
        if (entry->d_name[0] != '.' &&
            getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_DGRAM)
            count.datagram++;
    }
    closedir(folder);
    return count;
}

static void broadcast(MPI_Comm comm, int root, uint64_t seed, const char *what) {
    unsigned char message[MESSAGE_BYTES];
    check_broadcast(comm, message, sizeof message, root, seed, what);
}

/* A duplicate, then a part: the first or the last ranks but some. */
static void cycle(int i) {
    int ranks = check_size(), size;
    MPI_Comm duplicate, part;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    broadcast(duplicate, i % ranks, (uint64_t)i, "duplicate");
    MPI_Comm_split(duplicate, check_rank() < 2 + i % (ranks - 1), 0, &part);
    MPI_Comm_free(&duplicate);
    MPI_Comm_size(part, &size);
    broadcast(part, i % size, (uint64_t)i + 10000, "part");
    MPI_Comm_free(&part);
}

/* Counts when no rank has more datagram sockets than with MPI_COMM_WORLD alone. The library may keep those of freed
 * communicators for a while, and look after them when it is called. */
static struct descriptors settle(int datagram_alone) {
    const struct timespec pause = {.tv_nsec = 300 * 1000 * 1000};
    int is_settled = 0;
    for (int i = 0; i < SETTLE_TRIES && !is_settled; i++) {
        MPI_Comm duplicate;
        nanosleep(&pause, NULL);
        MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
        broadcast(duplicate, 0, (uint64_t)i + 20000, "while waiting");
        MPI_Comm_free(&duplicate);
        is_settled = count_descriptors().datagram <= datagram_alone;
        MPI_Allreduce(MPI_IN_PLACE, &is_settled, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
    struct descriptors now = count_descriptors();
    CHECK(now.datagram <= datagram_alone, "datagram sockets: %d with MPI_COMM_WORLD alone, %d after others",
          datagram_alone, now.datagram);
    return now;
}

static void one_after_the_other(int cycles, int datagram_alone) {
    struct descriptors warm = {0, 0}, now;
    for (int i = 0; i < cycles; i++) {
        cycle(i);
        if (i == cycles / 4)
            warm = settle(datagram_alone);
    }
    now = settle(datagram_alone);
    CHECK(now.all == warm.all, "descriptors: %d after %d cycles, %d at the end", warm.all, cycles / 4,
          now.all);
}

/* A rank that is not in the set gets MPI_COMM_NULL. */
static MPI_Comm of_set(unsigned set) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, set >> check_rank() & 1 ? 0 : MPI_UNDEFINED, 0, &comm);
    return comm;
}

static void all_at_once(int datagram_alone) {
    MPI_Comm comms[1 << MAX_RANKS];
    unsigned sets = 1u << check_size();
    for (unsigned set = 3; set < sets; set += 2) {
        comms[set] = of_set(set);
        if (comms[set] != MPI_COMM_NULL)
            broadcast(comms[set], 0, set, "the first on a set");
    }
    for (unsigned set = 3; set < sets; set += 2)
        if (comms[set] != MPI_COMM_NULL)
            broadcast(comms[set], 1, set + 1000, "the second on a set");
    int most = count_descriptors().datagram;
    for (unsigned set = 3; set < sets; set += 2)
        if (comms[set] != MPI_COMM_NULL)
            MPI_Comm_free(&comms[set]);
    settle(datagram_alone);
    if (check_rank() == 0)
        printf("SETS live=%u datagram_sockets=%d\n", sets / 2 - 1, most);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(check_size() >= 3 && check_size() <= MAX_RANKS, "needs 3 to %d ranks, has %d", MAX_RANKS,
          check_size());
    broadcast(MPI_COMM_WORLD, 0, 1, "MPI_COMM_WORLD");
    int datagram_alone = count_descriptors().datagram;
    one_after_the_other(argc > 1 ? atoi(argv[1]) : 150, datagram_alone);
    all_at_once(datagram_alone);
    check_ok("bcast_sets");
    MPI_Finalize();
}
