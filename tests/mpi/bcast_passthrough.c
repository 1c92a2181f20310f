/* The cost of one MPI_Bcast where stock does next to nothing: what a door adds is visible there.
 *
 * Usage: bcast_passthrough [CALLS [nothing]]. Prints `PASS self_ns=.. world_ns=.. empty_ns=..`: 4 bytes on
 * MPI_COMM_SELF, 4 bytes on MPI_COMM_WORLD (nan if it has several ranks, unless `nothing` says that
 * nothing.so stands in for the library), 0 bytes on MPI_COMM_WORLD. Best of five parts each. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

enum { PARTS = 5 };

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

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    long calls = argc > 1 ? atol(argv[1]) : 5000000;
    call_ns(MPI_COMM_WORLD, 0, calls / 10); /* caches, clock frequency, first calls */
    double self = call_ns(MPI_COMM_SELF, 4, calls);
    int is_cheap = check_size() == 1 || argc > 2;
    double world = is_cheap ? call_ns(MPI_COMM_WORLD, 4, calls) : NAN;
    double empty = call_ns(MPI_COMM_WORLD, 0, calls);
    if (check_rank() == 0)
        printf("PASS ranks=%d self_ns=%.1f world_ns=%.1f empty_ns=%.1f\n", check_size(), self, world, empty);
    check_ok("bcast_passthrough");
    MPI_Finalize();
}
