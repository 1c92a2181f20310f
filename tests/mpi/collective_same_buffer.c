/* Erroneous: the same buffer for what is sent and what is received, without MPI_IN_PLACE, with MPI_ERRORS_RETURN; `COLLECTIVE INTS CALLS`. Each rank
 * prints a line `RANK r errors class sum`; the lines of two runs, with and without polycast, are to be equal. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static int call(char collective, int *buffer, int ints) {
    const size_t mine = (size_t)check_rank() * (size_t)ints;
    switch (collective) {
    case 'r':
        return MPI_Reduce(buffer, buffer, ints, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    case 'a':
        return MPI_Allreduce(buffer, buffer, ints, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    case 'g':
        return MPI_Gather(buffer + mine, ints, MPI_INT, buffer, ints, MPI_INT, 0, MPI_COMM_WORLD);
    default:
        return MPI_Allgather(buffer + mine, ints, MPI_INT, buffer, ints, MPI_INT, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    int errors = 0, class = 0;
    unsigned long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(argc > 3, "expected COLLECTIVE INTS CALLS");
    const int ints = atoi(argv[2]), calls = atoi(argv[3]), all = ints * check_size();
    int *buffer = check_allocate((size_t)all * sizeof *buffer);
    for (int i = 0; i < calls; i++) {
        for (int at = 0; at < all; at++)
            buffer[at] = check_rank() + at % ints + i;
        const int code = call(argv[1][0], buffer, ints);
        errors += code != MPI_SUCCESS;
        if (code)
            MPI_Error_class(code, &class);
        for (int at = 0; at < all; at++)
            sum = sum * 31 + (unsigned)buffer[at];
    }
    printf("RANK %d %d %d %lx\n", check_rank(), errors, class, sum);
    free(buffer);
    check_ok("collective_same_buffer");
    MPI_Finalize();
    return 0;
}
