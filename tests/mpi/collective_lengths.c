/* An erroneous program: one rank hands in less or more than it says itself that each block has. MPI promises nothing, but no rank may be left waiting:
 * where there is room for what comes all go on, who hands in more returns with an error, and the next call is right.
 *
 * Not for the bare library, which may leave messages behind.
 *
 *   collective_lengths [allgather]    that alone, or all-to-alls, too */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, WRONG = 1 };

static unsigned char *sent, *received;

static int call(int is_alltoall, int count, MPI_Datatype type) {
    return is_alltoall ? MPI_Alltoall(sent, count, type, received, BLOCK, MPI_BYTE, MPI_COMM_WORLD)
                       : MPI_Allgather(sent, count, type, received, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
}

static void right(int is_alltoall, const char *before) {
    for (int block = 0; block < check_size(); block++)
        check_fill(sent + block * BLOCK, BLOCK, (uint64_t)(check_rank() + 1));
    memset(received, CHECK_UNWRITTEN, (size_t)check_size() * BLOCK);
    CHECK(call(is_alltoall, BLOCK, MPI_BYTE) == MPI_SUCCESS, "the call after %s fails", before);
    for (int rank = 0; rank < check_size(); rank++)
        check_pattern(received + rank * BLOCK, BLOCK, (uint64_t)(rank + 1), before);
}

static void wrong(int is_alltoall, int count, MPI_Datatype type, const char *what) {
    int is_wrong = check_rank() == WRONG;
    int code = call(is_alltoall, is_wrong ? count : BLOCK, is_wrong ? type : MPI_BYTE);
    const int is_error = is_wrong && type == MPI_BYTE && count > BLOCK;
    CHECK(is_error == (code != MPI_SUCCESS), "%s: code %d", what, code);
    right(is_alltoall, what);
}

int main(int argc, char **argv) {
    MPI_Datatype no_vector, no_row;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    sent = check_allocate((size_t)check_size() * (BLOCK + 8));
    received = check_allocate((size_t)check_size() * BLOCK);
    MPI_Type_vector(0, 1, 2, MPI_INT, &no_vector);
    MPI_Type_contiguous(0, MPI_INT, &no_row);
    MPI_Type_commit(&no_vector);
    MPI_Type_commit(&no_row);
    for (int is_alltoall = 0; is_alltoall < (argc > 1 ? 1 : 2); is_alltoall++) {
        right(is_alltoall, "nothing");
        wrong(is_alltoall, BLOCK / 2, MPI_BYTE, "half a block");
        wrong(is_alltoall, BLOCK + 8, MPI_BYTE, "more than a block");
        wrong(is_alltoall, 3, no_row, "a type of no bytes");
        wrong(is_alltoall, 1, no_vector, "a vector of no bytes");
    }
    MPI_Type_free(&no_vector);
    MPI_Type_free(&no_row);
    free(sent);
    free(received);
    check_ok("collective_lengths");
    MPI_Finalize();
    return 0;
}
