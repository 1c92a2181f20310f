/* Every root, sizes around the places where algorithms change their mind, three basic types (from one root each: it is their
 * bytes that count); nothing is written outside the message. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTES = 64 };

static void broadcast(MPI_Datatype type, size_t element_bytes, int count, int root) {
    static uint64_t seed;
    char what[96];
    const char *name = type == MPI_BYTE ? "MPI_BYTE" : type == MPI_INT ? "MPI_INT" : "MPI_DOUBLE";
    snprintf(what, sizeof what, "%d x %s from root %d", count, name, root);

    size_t bytes = element_bytes * (size_t)count;
    unsigned char *memory = check_allocate(bytes + 2 * GUARD_BYTES);
    unsigned char *message = memory + GUARD_BYTES;
    memset(memory, CHECK_UNWRITTEN, bytes + 2 * GUARD_BYTES);
    seed++;
    if (check_rank() == root)
        check_fill(message, bytes, seed);

    CHECK(MPI_Bcast(message, count, type, root, check_comm) == MPI_SUCCESS, "%s: not MPI_SUCCESS", what);

    check_pattern(message, bytes, seed, what);
    check_unwritten(memory, GUARD_BYTES, what);
    check_unwritten(message + bytes, GUARD_BYTES, what);
    free(memory);
}

static void all_roots_and_sizes(void) {
    static const int small[] = {0,    1,    2,    3,    4,    5,    7,    8,    9,    31,   63,   64,
                                65,   127,  255,  256,  257,  776,  777,  778,  1000, 1023, 1024, 1025,
                                1553, 1554, 2047, 2049, 4095, 4096, 4097, 8191, 8193, 10007};
    static const int large[] = {65535, 65536, 65537, 262147, 1048573, 3 * 1048576 + 1};
    int ranks = check_size();

    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (int root = 0; root < ranks; root++) {
            broadcast(MPI_BYTE, 1, small[i], root);
            if (small[i] <= 1025 && root == (int)i % ranks) {
                broadcast(MPI_INT, sizeof(int), small[i], root);
                broadcast(MPI_DOUBLE, sizeof(double), small[i], root);
            }
        }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        broadcast(MPI_BYTE, 1, large[i], (int)i % ranks);
        broadcast(MPI_DOUBLE, sizeof(double), large[i] / 8, ((int)i + 2) % ranks);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    check_each_algorithm(all_roots_and_sizes);
    check_ok("bcast_roots");
    MPI_Finalize();
}
