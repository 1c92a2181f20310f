/* An erroneous program: ranks call MPI_Bcast with different lengths. MPI promises nothing, but no rank may be left
 * waiting: each returns, those that cannot have their data with an error, and the next broadcast is right. Who has no
 * error has the root's data, as far as it has room, and nothing behind it.
 *
 * Not for the bare library, which may leave messages behind. Ranks that have less room than the root sends must have an error, and
 * those that have more must not. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES (192 * 1024)

static unsigned char *buffer;

static void after_an_error(int root, uint64_t seed) {
    memset(buffer, CHECK_UNWRITTEN, MAX_BYTES);
    if (check_rank() == root)
        check_fill(buffer, MAX_BYTES, seed);
    CHECK(MPI_Bcast(buffer, MAX_BYTES, MPI_BYTE, root, MPI_COMM_WORLD) == MPI_SUCCESS,
          "the broadcast after it fails");
    check_pattern(buffer, MAX_BYTES, seed, "the broadcast after it");
}

/* `is_other` says of a rank whether it calls with `other` bytes in place of `usual`. */
static void lengths(int usual, int other, int (*is_other)(int rank), int root) {
    static uint64_t seed = 1;
    int rank = check_rank();
    int mine = is_other(rank) ? other : usual, at_root = is_other(root) ? other : usual;
    memset(buffer, CHECK_UNWRITTEN, MAX_BYTES);
    if (rank == root)
        check_fill(buffer, MAX_BYTES, seed);
    int code = MPI_Bcast(buffer, mine, MPI_BYTE, root, MPI_COMM_WORLD);
    if (rank != root)
        CHECK((code == MPI_SUCCESS) == (mine >= at_root), "%d bytes, the root had %d: code %d", mine, at_root,
              code);
    if (rank != root && code == MPI_SUCCESS) {
        int got = mine < at_root ? mine : at_root;
        check_pattern(buffer, got, seed, "what the root sent");
        check_unwritten(buffer + got, MAX_BYTES - got, "behind what the root sent");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    after_an_error(root, ++seed);
}

static int rank_1(int rank) {
    return rank == 1;
}

static int all_but_0(int rank) {
    return rank != 0;
}

static int even(int rank) {
    return rank % 2 == 0;
}

int main(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    buffer = check_allocate(MAX_BYTES);
    static int (*const others[])(int) = {rank_1, all_but_0, even};
    /* Multiples of segments, so that no message is of another length than its receiver expects, and others. */
    static const int pairs[][2] = {
        {65536, 131072}, {131072, 65536}, {20000, 20001}, {20001, 20000}, {100, 190000}};
    for (size_t pair = 0; pair < sizeof pairs / sizeof *pairs; pair++)
        for (size_t who = 0; who < sizeof others / sizeof *others; who++)
            for (int root = 0; root < check_size(); root += 2)
                lengths(pairs[pair][0], pairs[pair][1], others[who], root);
    free(buffer);
    check_ok("bcast_lengths");
    MPI_Finalize();
    return 0;
}
