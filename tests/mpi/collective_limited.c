/* A program that lets itself write no long files, for whose breach the kernel ends it: shared memory is one. */
#include "check.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { CALLS = 300, MOST_INTS = 60000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int size = check_size();
    const struct rlimit limit = {65536, 65536};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "no limit");
    int *mine = calloc(MOST_INTS, sizeof *mine), *all = calloc(MOST_INTS, sizeof *all);
    for (int call = 0; call < CALLS; call++) {
        const int ints = call % 10 ? 100 : MOST_INTS;
        mine[ints - 1] = call;
        MPI_Allreduce(mine, all, ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all[ints - 1] == call * size, "sum %d: %d", call, all[ints - 1]);
        MPI_Bcast(mine, ints, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(mine);
    free(all);
    check_ok("collective_limited");
    MPI_Finalize();
    return 0;
}
