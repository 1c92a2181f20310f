/*
 * What a communicator costs that is made, used for one broadcast, and freed. measurements/come_and_go.sh starts it.
 *
 * Usage: come_and_go ROUNDS BYTES [KEPT]     KEPT: so many others are there at the same time, each used once
 *
 * Rank 0 prints microseconds: a round, from its beginning to its end on rank 0, and the middle ones of split, broadcast and free on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SPLIT, BROADCAST, FREE, STEPS };

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_size(const void *one, const void *other) {
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static void *allocate(size_t bytes) {
    void *memory = calloc(1, bytes);
    return memory ? memory : (fprintf(stderr, "come_and_go: no memory\n"), abort(), NULL);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 2000, bytes = argc > 2 ? atoi(argv[2]) : 4,
              kept = argc > 3 ? atoi(argv[3]) : 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *message = allocate((size_t)bytes + 1);
    MPI_Comm *others = allocate(((size_t)kept + 1) * sizeof *others);
    for (int i = 0; i < kept; i++) {
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &others[i]);
        MPI_Bcast(message, bytes, MPI_BYTE, 0, others[i]);
    }
    double *times[STEPS];
    for (int step = 0; step < STEPS; step++)
        times[step] = allocate((size_t)rounds * sizeof *times[step]);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now_us();
    for (int round = 0; round < rounds; round++) {
        MPI_Comm comm;
        const double start = now_us();
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
        const double made = now_us();
        MPI_Bcast(message, bytes, MPI_BYTE, 0, comm);
        const double used = now_us();
        MPI_Comm_free(&comm);
        times[SPLIT][round] = made - start;
        times[BROADCAST][round] = used - made;
        times[FREE][round] = now_us() - used;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = now_us() - began;
    for (int i = 0; i < kept; i++)
        MPI_Comm_free(&others[i]);
    if (rank == 0) {
        printf("%.2f", took / rounds);
        for (int step = 0; step < STEPS; step++) {
            qsort(times[step], (size_t)rounds, sizeof *times[step], by_size);
            printf(" %.2f", times[step][rounds / 2]);
        }
        printf("\n");
    }
    MPI_Finalize();
}
