/* A program whose memory is limited, as batch systems do it, and that has taken all but a little when it calls with blocks of several lengths and
 * with elements that do not lie side by side. The MPIs need next to no memory for these calls. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { MIB = 1 << 20, BLOCK = 20 * MIB, LEFT = 8 * MIB, STEP = 4 * MIB, CALLS = 40 };
static const rlim_t LIMIT = (rlim_t)1 << 30;

/* What the program uses for something else. */
static void take_all_but(size_t left) {
    void *spare = mmap(NULL, left, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(spare != MAP_FAILED, "expected %zu bytes to be left", left);
    while (mmap(NULL, STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
    }
    munmap(spare, left);
}

int main(int argc, char **argv) {
    const struct rlimit limit = {LIMIT, LIMIT};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
    MPI_Init(&argc, &argv);
    const int rank = check_rank(), size = check_size();
    int *counts = calloc((size_t)size, sizeof *counts), *places = calloc((size_t)size, sizeof *places);
    for (int other = 0, at = 0; other < size; other++) {
        counts[other] = BLOCK - other;
        places[other] = at;
        at += counts[other];
    }
    char *mine = check_allocate(BLOCK), *all = check_allocate((size_t)size * BLOCK);
    /* Every other byte. */
    MPI_Datatype sparse;
    MPI_Type_vector(BLOCK / 2, 1, 2, MPI_CHAR, &sparse);
    MPI_Type_commit(&sparse);
    /* Short ones, until what serves them is there. */
    for (int call = 0; call < CALLS; call++) {
        int sum = 0;
        MPI_Allreduce(&call, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == size * call, "sum %d", sum);
    }
    take_all_but(LEFT);
    memset(mine, 'a' + rank, BLOCK);
    for (int call = 0; call < CALLS; call++) {
        memset(all, 0, (size_t)size * BLOCK);
        MPI_Allgatherv(mine, counts[rank], MPI_CHAR, all, counts, places, MPI_CHAR, MPI_COMM_WORLD);
        for (int other = 0; other < size; other++) {
            CHECK(all[places[other]] == 'a' + other && all[places[other] + counts[other] - 1] == 'a' + other,
                  "call %d: the block of rank %d is wrong", call, other);
        }
    }
#ifdef OPEN_MPI
    /* MPICH itself packs the whole of it. */
    for (int call = 0; call < CALLS; call++) {
        const int root = call % size;
        memset(mine, rank == root ? 'A' + call % 26 : ' ', BLOCK);
        MPI_Bcast(mine, 1, sparse, root, MPI_COMM_WORLD);
        CHECK(mine[0] == 'A' + call % 26 && mine[BLOCK - 2] == mine[0], "broadcast %d", call);
        CHECK(mine[1] == (rank == root ? mine[0] : ' '), "broadcast %d wrote into a gap", call);
    }
#endif
    MPI_Type_free(&sparse);
    check_ok("collective_memory");
    MPI_Finalize();
    return 0;
}
