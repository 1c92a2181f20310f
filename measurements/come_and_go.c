/*
 * What a communicator costs that is made, used for one call, and freed. measurements/come_and_go.sh starts it.
 *
 * Usage: come_and_go ROUNDS BYTES [KEPT [MAKE [CALL]]]
 *     KEPT    so many others are there at the same time, each used once
 *     MAKE    split or dup
 *     CALL    bcast, or allreduce of doubles
 *
 * Rank 0 prints microseconds: a round, from its beginning to its end on rank 0, and the middle ones of making, call and free on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAKE, CALL, FREE, STEPS };

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

static const char *how, *what;

static MPI_Comm make(int rank) {
    MPI_Comm comm;
    if (strcmp(how, "dup") == 0) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
    }
    return comm;
}

static void call(void *message, void *result, int bytes, MPI_Comm comm) {
    if (strcmp(what, "allreduce") == 0) {
        MPI_Allreduce(message, result, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, comm);
    } else {
        MPI_Bcast(message, bytes, MPI_BYTE, 0, comm);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 2000, bytes = argc > 2 ? atoi(argv[2]) : 4,
              kept = argc > 3 ? atoi(argv[3]) : 0;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    how = argc > 4 ? argv[4] : "split";
    what = argc > 5 ? argv[5] : "bcast";
    char *message = allocate((size_t)bytes + 1), *result = allocate((size_t)bytes + 1);
    MPI_Comm *others = allocate(((size_t)kept + 1) * sizeof *others);
    for (int i = 0; i < kept; i++) {
        others[i] = make(rank);
        call(message, result, bytes, others[i]);
    }
    double *times[STEPS];
    for (int step = 0; step < STEPS; step++)
        times[step] = allocate((size_t)rounds * sizeof *times[step]);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now_us();
    for (int round = 0; round < rounds; round++) {
        const double start = now_us();
        MPI_Comm comm = make(rank);
        const double made = now_us();
        call(message, result, bytes, comm);
        const double used = now_us();
        MPI_Comm_free(&comm);
        times[MAKE][round] = made - start;
        times[CALL][round] = used - made;
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
