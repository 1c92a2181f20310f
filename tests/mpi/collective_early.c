/* Who hands out a short message, or contributes one to a reduction, does not wait for ranks that come later. A program that builds on it is not
 * portable, but runs under the MPIs for as long as they send before they are asked: so it runs with polycast. The bytes of the messages are the
 * arguments. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS = 300, ROUNDS = 40, TAG = 7 };

static double *mine, *all;
static int rank, size;

/* In each round another rank comes late: it waits for a word of the root's, which comes after the root's broadcast. */
static void broadcasts(int count) {
    for (int call = 0; call < CALLS; call++) {
        MPI_Bcast(mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    for (int round = 0; round < ROUNDS; round++) {
        const int late = 1 + round % (size - 1);
        mine[0] = rank == 0 ? round : -1;
        if (rank == late) {
            MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Bcast(mine, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Send(NULL, 0, MPI_BYTE, late, TAG, MPI_COMM_WORLD);
        }
        CHECK(mine[0] == round, "broadcast of %d in round %d: %g", count, round, mine[0]);
    }
}

/* The root comes late: it waits for a word of a rank that has contributed. Of a rank without children, in any tree. */
static void reductions(int count) {
    const int early = size - 1;
    for (int call = 0; call < CALLS; call++) {
        MPI_Reduce(mine, all, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    for (int round = 0; round < ROUNDS; round++) {
        mine[count - 1] = rank + round;
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, early, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Reduce(mine, all, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (rank == early) {
            MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
        const double due = size * (size - 1) / 2.0 + size * round;
        CHECK(rank != 0 || all[count - 1] == due, "reduction of %d in round %d: %g, not %g", count, round,
              all[count - 1], due);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    size = check_size(), rank = check_rank();
    for (int argument = 1; argument < argc; argument++) {
        const int count = atoi(argv[argument]) / (int)sizeof *mine;
        mine = calloc((size_t)count, sizeof *mine);
        all = calloc((size_t)count, sizeof *all);
        broadcasts(count);
        reductions(count);
        free(mine);
        free(all);
    }
    check_ok("collective_early");
    MPI_Finalize();
    return 0;
}
