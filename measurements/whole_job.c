/*
 * A whole job as a program would be: broadcasts of twelve sizes by turns, from the first call on, so with what the library sets up, asks
 * and tries. Rank 0 prints the seconds from the first call to the end of the last rank. measurements/whole_job.sh starts it.
 *
 * Usage: whole_job [CALLS]      of each size, 200 by default; the root goes round
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t sizes[] = {8,        100,      1 << 10,  4 << 10,   8 << 10, 12345,
                               16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20};
enum { SIZES = sizeof sizes / sizeof *sizes };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, calls = argc > 1 ? atoi(argv[1]) : 200;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *message = malloc(sizes[SIZES - 1]);
    memset(message, rank, sizes[SIZES - 1]);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime(), took, slowest;
    for (int call = 0; call < calls; call++)
        for (int size = 0; size < SIZES; size++)
            MPI_Bcast(message, (int)sizes[size], MPI_BYTE, call % ranks, MPI_COMM_WORLD);
    took = MPI_Wtime() - begun;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.4f\n", slowest);
    MPI_Finalize();
}
