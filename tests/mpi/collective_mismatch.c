/* Erroneous, and carried by MPIs: receivers have room for more than what comes, in each of 600 calls. What comes is received, and nothing behind it. */
#include "check.h"

#include <string.h>

enum { CALLS = 600, MAX_RANKS = 16, UNTOUCHED = -7 };

static int sent[2 * MAX_RANKS], received[2 * MAX_RANKS];

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 1 && check_size() <= MAX_RANKS, "which?");
    const int rank = check_rank(), size = check_size();
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < 2 * MAX_RANKS; i++) {
            sent[i] = 1000 * (rank + 1) + i + call;
            received[i] = UNTOUCHED;
        }
        int blocks = 0, first = 0;
        switch (argv[1][0]) {
        case 'g':
            MPI_Gather(sent, 1, MPI_INT, received, 2, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = rank == 0 ? size : 0;
            break;
        case 'a':
            MPI_Allgather(sent, 1, MPI_INT, received, 2, MPI_INT, MPI_COMM_WORLD);
            blocks = size;
            break;
        case 't':
            MPI_Alltoall(sent, 1, MPI_INT, received, 2, MPI_INT, MPI_COMM_WORLD);
            blocks = size;
            first = rank;
            break;
        case 's':
            MPI_Scatter(sent, 1, MPI_INT, received, 2, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = 1;
            first = rank;
            break;
        default:
            MPI_Bcast(rank == 0 ? sent : received, rank == 0 ? 1 : 2, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = rank > 0;
        }
        for (int block = 0; block < blocks; block++) {
            const int from = blocks == size ? block : 0;
            CHECK(received[2 * block] == 1000 * (from + 1) + first + call, "call %d: block %d begins with %d",
                  call, block, received[2 * block]);
            CHECK(received[2 * block + 1] == UNTOUCHED, "call %d: behind block %d stands %d", call, block,
                  received[2 * block + 1]);
        }
    }
    check_ok("collective_mismatch");
    MPI_Finalize();
    return 0;
}
