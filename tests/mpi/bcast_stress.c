/* Hundreds of broadcasts without a barrier: sizes from 1 byte to 1 MiB, changing roots, five communicators in turn, among
 * them two over the same ranks, two that share no rank, and one in the opposite order.
 *
 * Usage: bcast_stress [BROADCASTS [SEED]]. Prints `FIRST seconds=T`, what the first broadcast took, which sets
 * up what the others use. Jobs that run at the same time get different seeds. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { COMMUNICATORS = 4, LARGEST_BYTES = 1 << 20, SIZES = 21 };

static uint64_t job_seed;

/* The sizes are powers of two and their neighbours, in an order that takes small and large ones in turn. */
static size_t size_of(int i) {
    size_t power = (size_t)1 << (i * 8 % SIZES);
    return i % 3 == 0 ? power : i % 3 == 1 ? power - power / 3 : power - 1;
}

static void broadcast(MPI_Comm comm, int which, int colour, int i, unsigned char *message) {
    char what[96];
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    size_t bytes = size_of(i);
    uint64_t seed = job_seed + (uint64_t)i * 16 + (uint64_t)which * 2 + (uint64_t)colour;
    int root = (i / COMMUNICATORS + which) % ranks;
    memset(message, CHECK_UNWRITTEN, bytes + 1);
    if (rank == root)
        check_fill(message, bytes, seed);
    MPI_Bcast(message, (int)bytes, MPI_BYTE, root, comm);
    snprintf(what, sizeof what, "broadcast %d, communicator %d.%d, %zu bytes from %d", i, which, colour,
             bytes, root);
    check_pattern(message, bytes, seed, what);
    if (rank != root)
        check_unwritten(message + bytes, 1, what);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int broadcasts = argc > 1 ? atoi(argv[1]) : 300;
    job_seed = argc > 2 ? strtoull(argv[2], NULL, 10) << 32 : 0;
    int rank = check_rank(), half = rank % 2;
    unsigned char *message = check_allocate(LARGEST_BYTES + 8);

    double began = MPI_Wtime();
    broadcast(MPI_COMM_WORLD, 0, 0, 0, message);
    double took = MPI_Wtime() - began, slowest;
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("FIRST seconds=%.3f\n", slowest);

    MPI_Comm comms[COMMUNICATORS] = {MPI_COMM_WORLD};
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, half, rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comms[3]);
    for (int i = 1; i < broadcasts; i++) {
        int which = i % COMMUNICATORS;
        broadcast(comms[which], which, which == 2 ? half : 0, i, message);
    }
    for (int which = 1; which < COMMUNICATORS; which++)
        MPI_Comm_free(&comms[which]);
    free(message);
    check_ok("bcast_stress");
    MPI_Finalize();
}
