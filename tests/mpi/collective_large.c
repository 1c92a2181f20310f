/* More bytes of a rank than an int can count, block by block and in all, on two ranks for the memory. With arguments only the collectives of these names. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { WORDS_OF_ITEM = 3, FEW = 1000 };

static const size_t many = (size_t)(1 << 28) + 5; /* words of 8 bytes */
static int rank, ranks;

static uint64_t word(size_t i, int from) {
    return i * 7 + (uint64_t)from;
}

static uint64_t *words(size_t count) {
    return check_allocate(count * sizeof(uint64_t));
}

static void fill(uint64_t *block, size_t count, int from) {
    for (size_t i = 0; i < count; i++)
        block[i] = word(i, from);
}

/* Every 127th word, which lies on every page, and the last ones. */
static void expect(const uint64_t *block, size_t count, uint64_t times, uint64_t more, const char *what) {
    for (size_t i = 0; i < count; i += i + 300 < count ? 127 : 1)
        CHECK(block[i] == i * 7 * times + more, "%s: word %zu is %llu", what, i,
              (unsigned long long)block[i]);
}

/* Items of several words, so that a count of them is no count of bytes. */
static MPI_Datatype item(void) {
    MPI_Datatype type;
    MPI_Type_contiguous(WORDS_OF_ITEM, MPI_UINT64_T, &type);
    MPI_Type_commit(&type);
    return type;
}

static void scatter(void) {
    MPI_Datatype type = item();
    const int count = (int)(many / WORDS_OF_ITEM) + 1, root = ranks - 1;
    const size_t block = (size_t)count * WORDS_OF_ITEM;
    uint64_t *all = rank == root ? words((size_t)ranks * block) : NULL,
             *mine = rank == root ? NULL : words(block);
    for (int r = 0; rank == root && r < ranks; r++)
        fill(all + (size_t)r * block, block, r);
    MPI_Scatter(all, count, type, rank == root ? MPI_IN_PLACE : mine, count, type, root, MPI_COMM_WORLD);
    expect(rank == root ? all + (size_t)rank * block : mine, block, 1, (uint64_t)rank, "scatter");
    free(all);
    free(mine);
    MPI_Type_free(&type);
}

static void gather(void) {
    MPI_Datatype type = item();
    const int count = (int)(many / WORDS_OF_ITEM) + 1, root = 0;
    const size_t block = (size_t)count * WORDS_OF_ITEM;
    uint64_t *all = rank == root ? words((size_t)ranks * block) : NULL,
             *mine = rank == root ? all : words(block);
    fill(mine, block, rank);
    MPI_Gather(rank == root ? MPI_IN_PLACE : mine, count, type, all, count, type, root, MPI_COMM_WORLD);
    for (int r = 0; rank == root && r < ranks; r++)
        expect(all + (size_t)r * block, block, 1, (uint64_t)r, "gather");
    free(mine);
    MPI_Type_free(&type);
}

static void allgather(void) {
    uint64_t *all = words((size_t)ranks * many);
    fill(all + (size_t)rank * many, many, rank);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, (int)many, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        expect(all + (size_t)r * many, many, 1, (uint64_t)r, "allgather");
    free(all);
}

/* The long block in front, so that others begin beyond what an int counts. */
static void allgatherv(void) {
    int counts[2] = {(int)many, FEW}, places[2] = {0, (int)many};
    CHECK(ranks == 2, "expected 2 ranks, found %d", ranks);
    uint64_t *all = words(many + FEW);
    fill(all + places[rank], (size_t)counts[rank], rank);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, places, MPI_UINT64_T, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        expect(all + places[r], (size_t)counts[r], 1, (uint64_t)r, "allgatherv");
    free(all);
}

/* Blocks of half the length: four buffers of more than 2 GiB are there at the same time. */
static void alltoall(void) {
    MPI_Datatype type = item();
    const int count = (int)(many / WORDS_OF_ITEM / (size_t)ranks) + 1;
    const size_t block = (size_t)count * WORDS_OF_ITEM;
    uint64_t *from = words((size_t)ranks * block), *into = words((size_t)ranks * block);
    for (int r = 0; r < ranks; r++)
        fill(from + (size_t)r * block, block, rank * ranks + r);
    MPI_Alltoall(from, count, type, into, count, type, MPI_COMM_WORLD);
    for (int r = 0; r < ranks; r++)
        expect(into + (size_t)r * block, block, 1, (uint64_t)(r * ranks + rank), "alltoall");
    free(from);
    free(into);
    MPI_Type_free(&type);
}

static void reduce(void) {
    const int root = ranks - 1;
    uint64_t *mine = words(many), *sums = rank == root ? words(many) : NULL;
    fill(mine, many, rank);
    MPI_Reduce(mine, sums, (int)many, MPI_UINT64_T, MPI_SUM, root, MPI_COMM_WORLD);
    if (rank == root)
        expect(sums, many, (uint64_t)ranks, (uint64_t)(ranks * (ranks - 1) / 2), "reduce");
    expect(mine, many, 1, (uint64_t)rank, "what was handed in");
    free(mine);
    free(sums);
}

static void allreduce(void) {
    uint64_t *sums = words(many);
    fill(sums, many, rank);
    MPI_Allreduce(MPI_IN_PLACE, sums, (int)many, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    expect(sums, many, (uint64_t)ranks, (uint64_t)(ranks * (ranks - 1) / 2), "allreduce");
    free(sums);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"scatter", scatter},       {"gather", gather},     {"allgather", allgather},
               {"allgatherv", allgatherv}, {"alltoall", alltoall}, {"reduce", reduce},
               {"allreduce", allreduce}};
    MPI_Init(&argc, &argv);
    rank = check_rank();
    ranks = check_size();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int is_asked = argc == 1;
        for (int a = 1; a < argc; a++)
            is_asked |= !strcmp(argv[a], all[i].name);
        if (is_asked)
            all[i].run();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check_ok("collective_large");
    MPI_Finalize();
    return 0;
}
