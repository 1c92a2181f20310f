/* How programs with matrices call: columns by types whose extent is below their span, so that the blocks of ranks lie between each other and
 * the gaps of one are another's data; a transposition by all-to-all; two pieces of memory in one message from MPI_BOTTOM. */
#include "case.h"

enum { ROWS = 64, COLUMNS = 3, BLOCK = ROWS * COLUMNS };
static int calls, rank, ranks, width, call;
static long *matrix, *block;
/* Columns of the whole matrix; a rank's block in one piece. */
static MPI_Datatype columns, whole_block;

static void make_types(void) {
    MPI_Datatype vector;
    MPI_Type_vector(ROWS, COLUMNS, width, MPI_LONG, &vector);
    MPI_Type_create_resized(vector, 0, COLUMNS * sizeof(long), &columns);
    MPI_Type_commit(&columns);
    MPI_Type_free(&vector);
    MPI_Type_contiguous(BLOCK, MPI_LONG, &whole_block);
    MPI_Type_commit(&whole_block);
}

static long value(int of, int i) {
    return of * 1000000L + i + call;
}

static void unwrite(void) {
    memset(matrix, -1, ROWS * (size_t)width * sizeof *matrix);
}

static void expect_matrix(const char *what) {
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < width; j++)
            CHECK(matrix[i * width + j] == value(j / COLUMNS, i * COLUMNS + j % COLUMNS),
                  "%s, call %d: (%d, %d) is %ld", what, call, i, j, matrix[i * width + j]);
}

static void by_columns(int root) {
    for (int i = 0; i < BLOCK; i++)
        block[i] = value(rank, i);
    unwrite();
    MPI_Gather(block, 1, whole_block, matrix, 1, columns, root, check_comm);
    if (rank == root)
        expect_matrix("gather");
    else
        CHECK(matrix[0] == -1, "gather wrote where no root is");
    unwrite();
    MPI_Allgather(block, BLOCK, MPI_LONG, matrix, 1, columns, check_comm);
    expect_matrix("allgather");
    memset(block, 0, BLOCK * sizeof *block);
    MPI_Scatter(matrix, 1, columns, block, 1, whole_block, root, check_comm);
    for (int i = 0; i < BLOCK; i++)
        CHECK(block[i] == value(rank, i), "scatter, call %d: %d is %ld", call, i, block[i]);
}

/* Of a square that is spread by rows: columns are sent, rows received. */
static void transposition(long *mine, long *found) {
    MPI_Datatype vector, column;
    MPI_Type_vector(COLUMNS, 1, width, MPI_LONG, &vector);
    MPI_Type_create_resized(vector, 0, sizeof(long), &column);
    MPI_Type_commit(&column);
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < width; j++)
            mine[i * width + j] = (rank * COLUMNS + i) * 10000L + j;
    memset(found, -1, COLUMNS * (size_t)width * sizeof *found);
    MPI_Alltoall(mine, COLUMNS, column, found, COLUMNS * COLUMNS, MPI_LONG, check_comm);
    for (int from = 0; from < ranks; from++)
        for (int j = 0; j < COLUMNS; j++)
            for (int i = 0; i < COLUMNS; i++)
                CHECK(found[(from * COLUMNS + j) * COLUMNS + i] ==
                          (from * COLUMNS + i) * 10000L + rank * COLUMNS + j,
                      "alltoall, call %d from %d", call, from);
    MPI_Type_free(&vector);
    MPI_Type_free(&column);
}

static void expect_piece(const long *piece, int count, long factor, const char *which) {
    for (int i = 0; i < count; i++)
        CHECK(piece[i] == i * factor + call, "MPI_BOTTOM, call %d: %d of the %s piece", call, i, which);
}

/* By absolute addresses, with a type that is gone before the next call. */
static void from_bottom(int root, long *other) {
    const int lengths[] = {COLUMNS * width, BLOCK};
    MPI_Aint places[2];
    MPI_Datatype both;
    MPI_Get_address(other, &places[0]);
    MPI_Get_address(block, &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_LONG, &both);
    MPI_Type_commit(&both);
    for (int i = 0; i < lengths[0]; i++)
        other[i] = rank == root ? i * 3L + call : -5;
    for (int i = 0; i < lengths[1]; i++)
        block[i] = rank == root ? i * 7L + call : -6;
    MPI_Bcast(MPI_BOTTOM, 1, both, root, check_comm);
    expect_piece(other, lengths[0], 3, "first");
    expect_piece(block, lengths[1], 7, "second");
    MPI_Type_free(&both);
}

static void body(void) {
    const size_t square = COLUMNS * (size_t)width * sizeof(long);
    for (call = 0; call < calls; call++) {
        long *mine = check_allocate(square), *found = check_allocate(square);
        by_columns(call % ranks);
        transposition(mine, found);
        from_bottom(call % ranks, mine);
        free(mine);
        free(found);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    ranks = check_size();
    width = ranks * COLUMNS;
    matrix = check_allocate(ROWS * (size_t)width * sizeof *matrix);
    block = check_allocate(BLOCK * sizeof *block);
    make_types();
    check_each_setting(body);
    check_ok("interleaved");
    MPI_Finalize();
    return 0;
}
