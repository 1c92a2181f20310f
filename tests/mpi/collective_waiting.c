/* Messages of the program's to a rank that waits in a collective which polycast serves: rank 0 posts its receives and enters a barrier, the
 * others send, and enter it. Each comes whole. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { CALLS = 400, ROUNDS = 3, MESSAGES = 500, BYTES = 1024 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int size = check_size(), rank = check_rank(), all = MESSAGES * (size - 1);
    char *data = malloc((size_t)all * BYTES), message[BYTES];
    MPI_Request *requests = malloc((size_t)all * sizeof *requests);
    for (int call = 0; call < CALLS; call++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int at = 0; rank == 0 && at < all; at++) {
            MPI_Irecv(data + (size_t)at * BYTES, BYTES, MPI_BYTE, 1 + at / MESSAGES, at % MESSAGES,
                      MPI_COMM_WORLD, &requests[at]);
        }
        for (int at = 0; rank > 0 && at < MESSAGES; at++) {
            memset(message, rank + at + round, BYTES);
            MPI_Send(message, BYTES, MPI_BYTE, 0, at, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Waitall(all, requests, MPI_STATUSES_IGNORE);
        }
        for (int at = 0; rank == 0 && at < all; at++) {
            const char *came = data + (size_t)at * BYTES,
                       due = (char)(1 + at / MESSAGES + at % MESSAGES + round);
            CHECK(came[0] == due && came[BYTES - 1] == due, "message %d of round %d: %d, not %d", at, round,
                  came[0], due);
        }
    }
    free(requests);
    free(data);
    check_ok("collective_waiting");
    MPI_Finalize();
    return 0;
}
