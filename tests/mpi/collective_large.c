/* Blocks above 2 GiB, on two ranks for the memory: more bytes than an int can count. */
#include "check.h"

#include <stdlib.h>

enum { MANY = 1 << 28 }; /* of 8 bytes */

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const size_t count = (size_t)MANY + 5;
    int rank = check_rank(), ranks = check_size();
    uint64_t *all = check_allocate((size_t)ranks * count * sizeof *all);
    uint64_t *mine = all + (size_t)rank * count;
    for (size_t i = 0; i < count; i++)
        mine[i] = i * 7 + (uint64_t)rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)count, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        for (size_t i = 0; i < count; i++)
            CHECK(all[(size_t)r * count + i] == i * 7 + (uint64_t)r, "word %zu from %d", i, r);
    free(all);
    check_ok("collective_large");
    MPI_Finalize();
    return 0;
}
