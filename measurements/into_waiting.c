/*
 * How long messages take that go to a rank which waits in a barrier: rank 0 posts its receives and enters it, the others send to rank 0 and
 * enter it. measurements/into_waiting.sh starts it with polycast and without.
 *
 * Usage: into_waiting MESSAGES BYTES ROUNDS
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 2000, TAGS = 1024 };

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        fprintf(stderr, "usage: into_waiting MESSAGES BYTES ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int messages = atoi(argv[1]), bytes = atoi(argv[2]), rounds = atoi(argv[3]);
    const int all = messages * (ranks - 1);
    char *data = calloc((size_t)all + 1, (size_t)bytes);
    MPI_Request *requests = malloc(((size_t)all + 1) * sizeof *requests);
    double sum_ms = 0, worst_ms = 0;
    for (int call = 0; call < WARM_UP; call++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; rank == 0 && at < all; at++) {
            MPI_Irecv(data + (size_t)at * (size_t)bytes, bytes, MPI_BYTE, 1 + at / messages,
                      at % messages % TAGS, MPI_COMM_WORLD, &requests[at]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int at = 0; rank > 0 && at < messages; at++) {
            MPI_Send(data, bytes, MPI_BYTE, 0, at % TAGS, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        const double ms = (MPI_Wtime() - begin) * 1e3;
        if (rank == 0) {
            MPI_Waitall(all, requests, MPI_STATUSES_IGNORE);
        }
        sum_ms += ms;
        worst_ms = ms > worst_ms ? ms : worst_ms;
    }
    if (rank == 0) {
        printf("%d ranks, %d messages of %d bytes each: %.2f ms, at most %.2f\n", ranks, messages, bytes,
               sum_ms / rounds, worst_ms);
    }
    MPI_Finalize();
    return 0;
}
