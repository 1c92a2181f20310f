/* A rank that dies amid broadcasts, as if killed from outside. The job must end; that is for the launcher and the library to
 * see to, and nobody may stand in their way.
 *
 * Usage: bcast_killed [RANK [BROADCASTS [sums]]]: the rank, and before how many broadcasts it dies; each is followed by an allreduce of as
 * many bytes if there is a third word. */
#include "check.h"

#include <signal.h>
#include <stdlib.h>

enum { MESSAGE_BYTES = 100000, NUMBERS = MESSAGE_BYTES / sizeof(long) };

/* Of numbers that each rank can work out. */
static void sum_up(int call) {
    static long mine[NUMBERS], all[NUMBERS];
    long ranks = check_size();
    for (int i = 0; i < NUMBERS; i++)
        mine[i] = call + i + check_rank();
    MPI_Allreduce(mine, all, NUMBERS, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < NUMBERS; i++)
        CHECK(all[i] == ranks * (call + i) + ranks * (ranks - 1) / 2, "before a rank dies, sum %d is %ld", i,
              all[i]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int victim = argc > 1 ? atoi(argv[1]) : 1, last = argc > 2 ? atoi(argv[2]) : 50;
    unsigned char *message = check_allocate(MESSAGE_BYTES);
    for (int i = 0;; i++) {
        int root = i % check_size();
        if (i == last && check_rank() == victim)
            raise(SIGKILL);
        if (check_rank() == root)
            check_fill(message, MESSAGE_BYTES, (uint64_t)i);
        MPI_Bcast(message, MESSAGE_BYTES, MPI_BYTE, root, MPI_COMM_WORLD);
        check_pattern(message, MESSAGE_BYTES, (uint64_t)i, "before a rank dies");
        if (argc > 3)
            sum_up(i);
    }
}
