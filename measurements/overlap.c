/*
 * How much of an MPI_Ibcast is hidden behind computation:
 *
 *   alone     start, wait
 *   compute   for as long as `alone` takes at the median, in SLICES parts
 *   both      start, compute with an MPI_Test after each part, wait
 *
 *   hidden = (alone + compute - both) / alone       1: nothing of it is left to be waited for; 0: as if one came after the other
 *
 * Computation is slept: in a lab many hosts share a few cores, and a host that computes would take them from the others, which it does not
 * do in a cluster. Of each round the slowest rank counts; rounds of all ways take turns.
 *
 *   overlap BYTES ROUNDS SLICES WAY…        a way is a word for POLYCAST_BCAST; needs the component of Open MPI, or all are stock
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_WAYS = 16 };

static void compute(double seconds) {
    const struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static double now(void) {
    return MPI_Wtime();
}

/* The slowest rank's time, on all ranks. */
static double once(char *message, int bytes, MPI_Comm comm, double computation, int slices) {
    MPI_Request request;
    int is_done = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now();
    MPI_Ibcast(message, bytes, MPI_BYTE, 0, comm, &request);
    for (int i = 0; computation > 0 && i < slices; i++) {
        compute(computation / slices);
        if (!is_done) {
            MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        }
    }
    if (!is_done) {
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    double mine = now() - began, slowest;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

/* The same without a call, for sleeps last longer than they are told. */
static double computing(double computation, int slices) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now();
    for (int i = 0; i < slices; i++) {
        compute(computation / slices);
    }
    double mine = now() - began, slowest;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static int by_size(const void *left, const void *right) {
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double part(double *sorted, int count, double share) {
    return sorted[(int)(share * (count - 1) + 0.5)];
}

int main(int argc, char **argv) {
    int rank, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 5 || argc - 4 > MAX_WAYS) {
        fprintf(stderr, "overlap: expected BYTES ROUNDS SLICES WAY…\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int bytes = atoi(argv[1]), rounds = atoi(argv[2]), slices = atoi(argv[3]), ways = argc - 4;
    int (*configure)(const char *, const char *);
    *(void **)&configure = dlsym(RTLD_DEFAULT, "polycast_configure");
    char *message = malloc((size_t)bytes);
    MPI_Comm comms[MAX_WAYS];
    double *alone[MAX_WAYS], *hidden[MAX_WAYS];
    for (int way = 0; way < ways; way++) {
        if (configure) {
            configure("POLYCAST_BCAST", argv[4 + way]);
        }
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[way]);
        /* The ranks agree on the communicator, and on what the way needs. */
        MPI_Bcast(message, bytes, MPI_BYTE, 0, comms[way]);
        MPI_Barrier(comms[way]);
        alone[way] = malloc((size_t)rounds * sizeof(double));
        hidden[way] = malloc((size_t)rounds * sizeof(double));
    }
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < ways; way++) {
            alone[way][round] = once(message, bytes, comms[way], 0, 0);
        }
    }
    for (int way = 0; way < ways; way++) {
        qsort(alone[way], (size_t)rounds, sizeof(double), by_size);
    }
    for (int round = 0; round < rounds; round++) {
        for (int way = 0; way < ways; way++) {
            const double length = part(alone[way], rounds, 0.5), took = computing(length, slices);
            for (int i = 0; i < bytes; i++) {
                message[i] = (char)(rank == 0 ? i + round : -1);
            }
            hidden[way][round] = (length + took - once(message, bytes, comms[way], length, slices)) / length;
            for (int i = 0; i < bytes; i++) {
                wrong += message[i] != (char)(i + round);
            }
        }
    }
    for (int way = 0; rank == 0 && way < ways; way++) {
        qsort(hidden[way], (size_t)rounds, sizeof(double), by_size);
        printf("%-28s alone %8.0f us (%.0f to %.0f)   hidden %4.0f %% (%.0f to %.0f)\n", argv[4 + way],
               1e6 * part(alone[way], rounds, 0.5), 1e6 * part(alone[way], rounds, 0.25),
               1e6 * part(alone[way], rounds, 0.75), 100 * part(hidden[way], rounds, 0.5),
               100 * part(hidden[way], rounds, 0.25), 100 * part(hidden[way], rounds, 0.75));
    }
    if (wrong) {
        printf("rank %d: %d wrong bytes\n", rank, wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
