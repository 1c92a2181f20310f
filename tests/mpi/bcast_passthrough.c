/* The cost of one MPI_Bcast where stock does next to nothing: what a door adds is visible there.
 *
 * Usage: bcast_passthrough [CALLS [nothing]]. Prints `PASS self_ns=.. world_ns=.. empty_ns=..`: 4 bytes on
 * MPI_COMM_SELF, 4 bytes on MPI_COMM_WORLD (nan if it has several ranks, unless `nothing` says that
 * nothing.so stands in for the library), 0 bytes on MPI_COMM_WORLD. Best of five parts each. With `nothing` also
 * `cold_ns=.. stays_ns=.. stays_cold_ns=..`: the median of single calls of 4 bytes, each after other memory was used, and of
 * 16 KiB, of which polycast has found that stock is faster, without that and with it. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 5, SINGLE_CALLS = 3000, STAYING_BYTES = 16 << 10, USED_BYTES = 4 << 20 };

static double call_ns(MPI_Comm comm, int bytes, long calls) {
    int data = 1;
    double best = INFINITY;
    for (int part = 0; part < PARTS; part++) {
        MPI_Barrier(comm);
        double start = MPI_Wtime();
        for (long i = 0; i < calls / PARTS; i++)
            MPI_Bcast(&data, bytes, MPI_BYTE, 0, comm);
        double seconds = MPI_Wtime() - start;
        best = seconds < best ? seconds : best;
    }
    return best / (double)(calls / PARTS) * 1e9;
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

/* As a program that computes between its calls: nothing of the library is in the nearer caches. */
static void use_memory(void) {
    static volatile char used[USED_BYTES];
    for (size_t at = 0; at < sizeof used; at += 64)
        used[at]++;
}

/* The clock's own time is in it, which is there without polycast, too. */
static double single_call_ns(int bytes, int is_cold) {
    static char data[STAYING_BYTES];
    static double ns[SINGLE_CALLS];
    for (int i = 0; i < SINGLE_CALLS; i++) {
        if (is_cold)
            use_memory();
        double start = MPI_Wtime();
        MPI_Bcast(data, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        ns[i] = (MPI_Wtime() - start) * 1e9;
    }
    qsort(ns, SINGLE_CALLS, sizeof *ns, compare);
    return ns[SINGLE_CALLS / 2];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long calls = argc > 1 ? atol(argv[1]) : 5000000;
    call_ns(MPI_COMM_WORLD, 0, calls / 10); /* caches, clock frequency, first calls */
    double self = call_ns(MPI_COMM_SELF, 4, calls);
    int is_cheap = check_size() == 1 || argc > 2;
    double world = is_cheap ? call_ns(MPI_COMM_WORLD, 4, calls) : NAN;
    double empty = call_ns(MPI_COMM_WORLD, 0, calls);
    if (check_rank() == 0)
        printf("PASS ranks=%d self_ns=%.1f world_ns=%.1f empty_ns=%.1f", check_size(), self, world, empty);
    if (argc > 2) {
        double cold = single_call_ns(4, 1);
        single_call_ns(STAYING_BYTES, 0); /* compared */
        double stays = single_call_ns(STAYING_BYTES, 0), stays_cold = single_call_ns(STAYING_BYTES, 1);
        if (check_rank() == 0)
            printf(" cold_ns=%.1f stays_ns=%.1f stays_cold_ns=%.1f", cold, stays, stays_cold);
    }
    if (check_rank() == 0)
        printf("\n");
    check_ok("bcast_passthrough");
    MPI_Finalize();
}
