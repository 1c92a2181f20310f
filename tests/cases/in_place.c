/* MPI_IN_PLACE wherever it may stand, with arguments that MPI then ignores and that hold what nobody may read: counts below 0, no type. */
#include "case.h"

enum { MOST = 700 };
static int calls, rank, ranks, *all, *mine;

static void unwrite(void) {
    memset(all, CHECK_UNWRITTEN, (size_t)MOST * (size_t)ranks * sizeof *all);
}

static void alltoall(int count) {
    for (int i = 0; i < count * ranks; i++)
        all[i] = rank * 1000003 + i;
    MPI_Alltoall(MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, all, count, MPI_INT, check_comm);
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < count; i++)
            CHECK(all[from * count + i] == from * 1000003 + rank * count + i, "alltoall of %d", count);
}

static void expect_gathered(int count, int factor, const char *what) {
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < count; i++)
            CHECK(all[from * count + i] == from * factor + i, "%s of %d", what, count);
}

static void allgather(int count) {
    unwrite();
    for (int i = 0; i < count; i++)
        all[rank * count + i] = rank * 7 + i;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, count, MPI_INT, check_comm);
    expect_gathered(count, 7, "allgather");
}

static void gather(int count, int root) {
    unwrite();
    for (int i = 0; i < count; i++)
        all[rank * count + i] = mine[i] = rank * 5 + i;
    if (rank == root) {
        MPI_Gather(MPI_IN_PLACE, -3, MPI_DATATYPE_NULL, all, count, MPI_INT, root, check_comm);
        expect_gathered(count, 5, "gather");
    } else {
        MPI_Gather(mine, count, MPI_INT, NULL, -1, MPI_DATATYPE_NULL, root, check_comm);
    }
}

static void scatter(int count, int root) {
    if (rank != root) {
        MPI_Scatter(NULL, -1, MPI_DATATYPE_NULL, mine, count, MPI_INT, root, check_comm);
        for (int i = 0; i < count; i++)
            CHECK(mine[i] == (rank * count + i) * 3, "scatter of %d", count);
        return;
    }
    for (int i = 0; i < count * ranks; i++)
        all[i] = i * 3;
    MPI_Scatter(all, count, MPI_INT, MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, root, check_comm);
    for (int i = 0; i < count * ranks; i++)
        CHECK(all[i] == i * 3, "scatter of %d wrote at its root", count);
}

/* `has_sum`: what this rank is to find is the sum, else what it handed in. */
static void expect_sums(int count, int has_sum, const char *what) {
    for (int i = 0; i < count; i++)
        CHECK(all[i] == (has_sum ? ranks * (ranks - 1) / 2 + ranks * i : rank + i), "%s of %d", what, count);
}

static void reductions(int count, int root) {
    for (int i = 0; i < count; i++)
        all[i] = rank + i;
    MPI_Allreduce(MPI_IN_PLACE, all, count, MPI_INT, MPI_SUM, check_comm);
    expect_sums(count, 1, "allreduce");
    for (int i = 0; i < count; i++)
        all[i] = rank + i;
    if (rank == root)
        MPI_Reduce(MPI_IN_PLACE, all, count, MPI_INT, MPI_SUM, root, check_comm);
    else
        MPI_Reduce(all, NULL, count, MPI_INT, MPI_SUM, root, check_comm);
    expect_sums(count, rank == root, "reduce");
}

static void body(void) {
    for (int call = 0; call < calls; call++) {
        const int root = call % ranks, count = 1 + call % MOST;
        alltoall(count);
        allgather(count);
        gather(count, root);
        scatter(count, root);
        reductions(count, root);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    ranks = check_size();
    all = check_allocate((size_t)MOST * (size_t)ranks * sizeof *all);
    mine = check_allocate(MOST * sizeof *mine);
    check_each_setting(body);
    check_ok("in_place");
    MPI_Finalize();
    return 0;
}
