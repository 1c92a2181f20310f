/*
 * Whether multicast would gain as the second half of other collectives: each beside what brings the same to one rank, followed by a broadcast
 * of it, which POLYCAST_BCAST lets travel by multicast.
 *
 *   barrier      beside a gather of a byte from each, and a broadcast of one
 *   allreduce    beside a reduce and a broadcast
 *   allgather    beside a gather and a broadcast, of the same sum of bytes
 *
 * Calls of both ways take turns; of each the slowest rank's time counts.
 *
 *   second_half ROUNDS BYTES…
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int ranks, rank;
static char *mine, *all;

static void barrier(int bytes, int in_halves) {
    (void)bytes;
    if (in_halves) {
        MPI_Gather(mine, 1, MPI_BYTE, all, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Bcast(all, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void allreduce(int bytes, int in_halves) {
    const int count = bytes / (int)sizeof(int);
    if (in_halves) {
        MPI_Reduce(mine, all, count, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
        MPI_Bcast(all, count, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(mine, all, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void allgather(int bytes, int in_halves) {
    const int block = bytes / ranks;
    if (in_halves) {
        MPI_Gather(mine, block, MPI_BYTE, all, block, MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Bcast(all, block * ranks, MPI_BYTE, 0, MPI_COMM_WORLD);
    } else {
        MPI_Allgather(mine, block, MPI_BYTE, all, block, MPI_BYTE, MPI_COMM_WORLD);
    }
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Prints middle and quarters of both ways. */
static void measure(const char *name, void (*call)(int, int), int bytes, int rounds) {
    double *times[2] = {malloc((size_t)rounds * sizeof(double)), malloc((size_t)rounds * sizeof(double))};
    /* Two rounds before those that count: sets are asked for their network, connections are made. */
    for (int round = -2; round < rounds; round++) {
        for (int way = 0; way < 2; way++) {
            MPI_Barrier(MPI_COMM_WORLD);
            const double began = MPI_Wtime();
            call(bytes, way);
            double took = MPI_Wtime() - began, slowest;
            MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            if (round >= 0) {
                times[way][round] = slowest;
            }
        }
    }
    if (rank == 0) {
        printf("%-10s %9d bytes", name, bytes);
        for (int way = 0; way < 2; way++) {
            qsort(times[way], (size_t)rounds, sizeof(double), by_size);
            printf("   %s %9.0f us (%.0f to %.0f)", way ? "in halves" : "at once",
                   1e6 * times[way][rounds / 2], 1e6 * times[way][rounds / 4],
                   1e6 * times[way][rounds * 3 / 4]);
        }
        printf("   times %.2f\n", times[1][rounds / 2] / times[0][rounds / 2]);
        fflush(stdout);
    }
    free(times[0]);
    free(times[1]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int rounds = argc > 2 ? atoi(argv[1]) : 0;
    if (rounds < 1) {
        fprintf(stderr, "second_half: expected ROUNDS BYTES…\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    mine = calloc(1, 1);
    all = calloc((size_t)ranks, 1);
    measure("barrier", barrier, 1, rounds);
    for (int i = 2; i < argc; i++) {
        const int bytes = atoi(argv[i]);
        mine = realloc(mine, (size_t)bytes);
        all = realloc(all, (size_t)bytes);
        memset(mine, 1, (size_t)bytes);
        measure("allreduce", allreduce, bytes, rounds);
        if (bytes >= ranks) {
            measure("allgather", allgather, bytes, rounds);
        }
    }
    free(mine);
    free(all);
    MPI_Finalize();
    return 0;
}
