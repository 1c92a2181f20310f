/* Erroneous, and carried by MPIs: receivers have room for more than what comes, in each of many calls. What comes is received, and nothing behind it.
 *
 *   collective_mismatch WHICH [SENT [ROOM [WHO [CALLS]]]]    elements that are sent, and for which there is room: 1 and 2. WHO: the one rank that has this
 *                                                            room, and the others have as much as is sent; all without it
 */
#include "check.h"

#include <stdlib.h>

enum { MAX_RANKS = 16, MAX_ELEMENTS = 1 << 14, UNTOUCHED = -7 };

static int sent[MAX_ELEMENTS * MAX_RANKS], received[MAX_ELEMENTS * MAX_RANKS];

/* Of the first and the last element that a block has, and of those behind it. */
static void check_block(int call, int block, const int *elements, int first, int count, int room) {
    CHECK(elements[0] == first && elements[count - 1] == first + count - 1,
          "call %d: block %d begins with %d and ends with %d, expected %d", call, block, elements[0],
          elements[count - 1], first);
    for (int i = count; i < room; i++) {
        CHECK(elements[i] == UNTOUCHED, "call %d: behind block %d stands %d", call, block, elements[i]);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 1 && check_size() <= MAX_RANKS, "which?");
    const int rank = check_rank(), size = check_size();
    const int count = argc > 2 ? atoi(argv[2]) : 1, most = argc > 3 ? atoi(argv[3]) : 2;
    const int who = argc > 4 ? atoi(argv[4]) : -1, calls = argc > 5 ? atoi(argv[5]) : 600;
    const int room = who < 0 || who == rank ? most : count;
    CHECK(count <= MAX_ELEMENTS && most <= MAX_ELEMENTS, "so many?");
    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < count * size; i++) {
            sent[i] = 1000 * (rank + 1) + i + call;
        }
        for (int i = 0; i < room * size; i++) {
            received[i] = UNTOUCHED;
        }
        int blocks = 0, first = 0;
        switch (argv[1][0]) {
        case 'g':
            MPI_Gather(sent, count, MPI_INT, received, room, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = rank == 0 ? size : 0;
            break;
        case 'a':
            MPI_Allgather(sent, count, MPI_INT, received, room, MPI_INT, MPI_COMM_WORLD);
            blocks = size;
            break;
        case 't':
            MPI_Alltoall(sent, count, MPI_INT, received, room, MPI_INT, MPI_COMM_WORLD);
            blocks = size;
            first = rank * count;
            break;
        case 's':
            MPI_Scatter(sent, count, MPI_INT, received, room, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = 1;
            first = rank * count;
            break;
        default:
            MPI_Bcast(rank == 0 ? sent : received, rank == 0 ? count : room, MPI_INT, 0, MPI_COMM_WORLD);
            blocks = rank > 0;
        }
        for (int block = 0; block < blocks; block++) {
            const int from = blocks == size ? block : 0;
            check_block(call, block, received + room * block, 1000 * (from + 1) + first + call, count, room);
        }
    }
    check_ok("collective_mismatch");
    MPI_Finalize();
    return 0;
}
