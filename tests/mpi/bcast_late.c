/* Ranks that come seconds late: the root, its successor, one in the middle. Who need not wait for them does not, and they
 * get what the others have had for long, also of the next broadcast, which has begun without them.
 *
 * Usage: bcast_late [SECONDS [BYTES]]. Prints `LATE rank=L bytes=N left_s=A,B,…`: for every rank, how long it was in the
 * broadcast for which rank L was late. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char *message;

static void broadcast(int bytes, int root, uint64_t seed, const char *what) {
    memset(message, CHECK_UNWRITTEN, (size_t)bytes);
    if (check_rank() == root)
        check_fill(message, (size_t)bytes, seed);
    MPI_Bcast(message, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check_pattern(message, (size_t)bytes, seed, what);
}

static void with_late_rank(int late, double seconds, int bytes) {
    int rank = check_rank(), ranks = check_size();
    double *all = check_allocate(sizeof(double) * (size_t)ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == late)
        usleep((useconds_t)(seconds * 1e6));
    double began = MPI_Wtime();
    broadcast(bytes, 0, 100 + (uint64_t)late, "with a late rank");
    double took = MPI_Wtime() - began;
    broadcast(bytes / 2, 1, 200 + (uint64_t)late, "after the one with a late rank");
    broadcast(3, ranks - 1, 300 + (uint64_t)late, "the second after the one with a late rank");
    MPI_Gather(&took, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("LATE rank=%d bytes=%d left_s=", late, bytes);
        for (int r = 0; r < ranks; r++)
            printf("%s%.3f", r ? "," : "", all[r]);
        printf("\n");
    }
    free(all);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    int bytes = argc > 2 ? atoi(argv[2]) : 2000;
    message = check_allocate((size_t)bytes);
    for (int root = 0; root < check_size(); root++)
        broadcast(bytes, root, (uint64_t)root, "before anybody is late");
    for (int late = 0; late < check_size() - 1; late++)
        with_late_rank(late, seconds, bytes);
    free(message);
    check_ok("bcast_late");
    MPI_Finalize();
}
