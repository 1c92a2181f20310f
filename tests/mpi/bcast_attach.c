/* What a communicator costs that has one broadcast: makes, broadcasts on and frees some, and prints the slowest rank's time; then what it
 * costs in memory to keep them.
 *
 * Usage: bcast_attach split|dup BYTES [COMMUNICATORS], 2000 by default; split: ranks by twos */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static int is_split;

static MPI_Comm make(void) {
    MPI_Comm comm;
    if (is_split)
        MPI_Comm_split(MPI_COMM_WORLD, check_rank() / 2, 0, &comm);
    else
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return comm;
}

static void broadcast(MPI_Comm comm, unsigned char *message, int bytes, int seed) {
    check_broadcast(comm, message, (size_t)bytes, 0, (uint64_t)seed, "on a new communicator");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 2, "expected split or dup, and bytes");
    is_split = strcmp(argv[1], "split") == 0;
    int bytes = atoi(argv[2]), count = argc > 3 ? atoi(argv[3]) : 2000;
    unsigned char *message = check_allocate((size_t)bytes);
    broadcast(MPI_COMM_WORLD, message, bytes, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime(), took, slowest;
    for (int i = 0; i < count; i++) {
        MPI_Comm comm = make();
        broadcast(comm, message, bytes, i);
        MPI_Comm_free(&comm);
    }
    took = MPI_Wtime() - begun;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    /* The MPI's own memory is there already when the library's is counted. */
    MPI_Comm *kept = check_allocate((size_t)count * sizeof *kept);
    for (int i = 0; i < count; i++)
        kept[i] = make();
    long before = check_resident_kib();
    for (int i = 0; i < count; i++)
        broadcast(kept[i], message, bytes, i);
    long grown = check_resident_kib() - before;
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&kept[i]);
    if (check_rank() == 0)
        printf("ATTACH what=%s bytes=%d communicators=%d seconds=%.4f kept_bytes_each=%ld\n", argv[1], bytes,
               count, slowest, grown * 1024 / count);
    check_ok("bcast_attach");
    MPI_Finalize();
}
