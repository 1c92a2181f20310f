/* Communicators over many sets of ranks. First each is freed before the next is made: neither open files nor datagram
 * sockets grow. Then all sets that have rank 0 live at the same time, which is more than a library can join
 * multicast groups for.
 *
 * Usage: bcast_sets [CYCLES], two communicators each, 150 by default; at most 8 ranks. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MESSAGE_BYTES = 3000, RANKS_MOST = 8 };

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
    int rank;
    MPI_Comm_rank(comm, &rank);
    memset(message, CHECK_UNWRITTEN, sizeof message);
    if (rank == root)
        check_fill(message, sizeof message, seed);
    MPI_Bcast(message, sizeof message, MPI_BYTE, root, comm);
    check_pattern(message, sizeof message, seed, what);
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

static void one_after_the_other(int cycles) {
    struct descriptors warm = {0, 0}, now;
    for (int i = 0; i < cycles; i++) {
        cycle(i);
        if (i == cycles / 4)
            warm = count_descriptors();
    }
    now = count_descriptors();
    CHECK(now.all == warm.all && now.datagram == warm.datagram,
          "descriptors: %d (%d datagram sockets) after %d cycles, %d (%d) at the end", warm.all,
          warm.datagram, cycles / 4, now.all, now.datagram);
}

/* A rank that is not in the set gets MPI_COMM_NULL. */
static MPI_Comm of_set(unsigned set) {
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, set >> check_rank() & 1 ? 0 : MPI_UNDEFINED, 0, &comm);
    return comm;
}

static void all_at_once(void) {
    MPI_Comm comms[1 << RANKS_MOST];
    unsigned sets = 1u << check_size();
    int before = count_descriptors().datagram;
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
    int after = count_descriptors().datagram;
    CHECK(after == before, "datagram sockets: %d before, %d after %u communicators", before, after, sets / 2);
    if (check_rank() == 0)
        printf("SETS live=%u datagram_sockets=%d\n", sets / 2 - 1, most);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(check_size() >= 3 && check_size() <= RANKS_MOST, "needs 3 to %d ranks, has %d", RANKS_MOST,
          check_size());
    broadcast(MPI_COMM_WORLD, 0, 1, "MPI_COMM_WORLD");
    one_after_the_other(argc > 1 ? atoi(argv[1]) : 150);
    all_at_once();
    check_ok("bcast_sets");
    MPI_Finalize();
}
