/* verbs.c: milliseconds of broadcasts of so many bytes, the slowest rank counts: verbs BYTES CALLS. See verbs.sh. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int rank, bytes = atoi(words[1]), calls = atoi(words[2]);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned char *buffer = malloc((size_t)bytes);
    double *times = calloc((size_t)calls, sizeof *times);
    for (int call = -2; call < calls; call++) {
        memset(buffer, rank == 0 ? call & 0xff : 0x5a, (size_t)bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        double took = -MPI_Wtime();
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        took += MPI_Wtime();
        /* Who looks at its bytes takes a core from those that still receive. */
        MPI_Barrier(MPI_COMM_WORLD);
        for (int at = 0; at < bytes; at++) {
            if (buffer[at] != (unsigned char)(call & 0xff)) {
                fprintf(stderr, "rank %d has a wrong byte\n", rank);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (call >= 0) {
            times[call] = took * 1e3;
        }
    }
    qsort(times, (size_t)calls, sizeof *times, by_value);
    if (rank == 0) {
        printf("%.3f\n", times[calls / 2]);
    }
    MPI_Finalize();
    return 0;
}
