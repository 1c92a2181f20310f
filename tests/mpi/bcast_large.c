/* Messages above 2 GiB: an element count that fits an int and a byte count that does not, MPI_Bcast_c, and a
 * type with gaps. Takes 2.3 GB of memory per rank, with a type that must be packed twice that: run it with 2
 * ranks. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Odd, above 2^31, a multiple of no segment size. */
enum { UNIT_BYTES = 1000003, UNITS = 2255, UNIT_EXTENT = UNIT_BYTES + 5, SAMPLE_STRIDE = 4099 };
#define MESSAGE_BYTES ((size_t)UNIT_BYTES * UNITS)
#define MEMORY_BYTES ((size_t)UNIT_EXTENT * UNITS)

/* Where byte `at` of the message lies when units are `extent` apart. */
static size_t place(size_t at, size_t extent) {
    return at / UNIT_BYTES * extent + at % UNIT_BYTES;
}

static int fully_checked(size_t at) {
    const size_t zone = 65536, int_limit = (size_t)1 << 31;
    return at < zone || at + zone >= MESSAGE_BYTES || (at + zone >= int_limit && at < int_limit + zone);
}

/* Calls `visit` for all bytes at both ends and around 2 GiB, and for a few bytes of every page elsewhere. */
static void each_sample(unsigned char *memory, size_t extent, uint64_t seed,
                        void (*visit)(unsigned char *, unsigned char, size_t)) {
    for (size_t at = 0; at < MESSAGE_BYTES; at += fully_checked(at) ? 1 : SAMPLE_STRIDE)
        visit(memory + place(at, extent), (unsigned char)check_word(seed, at), at);
}

static void write_sample(unsigned char *byte, unsigned char value, size_t at) {
    (void)at;
    *byte = value;
}

static void read_sample(unsigned char *byte, unsigned char value, size_t at) {
    CHECK(*byte == value, "byte %zu of %zu is 0x%02x, expected 0x%02x", at, MESSAGE_BYTES, *byte, value);
}

/* Fresh zero pages: a receiver's sample can match only if the broadcast wrote it. */
static unsigned char *map_memory(void) {
    void *memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "cannot map %zu bytes", MEMORY_BYTES);
    return memory;
}

enum call { CALL_INT_COUNT, CALL_LARGE_COUNT };

static void broadcast(enum call call, MPI_Count count, MPI_Datatype type, size_t extent, int root) {
    static uint64_t seed = 99;
    unsigned char *memory = map_memory();
    seed++;
    if (check_rank() == root)
        each_sample(memory, extent, seed, write_sample);
    if (call == CALL_INT_COUNT)
        MPI_Bcast(memory, (int)count, type, root, MPI_COMM_WORLD);
#if MPI_VERSION >= 4
    else
        MPI_Bcast_c(memory, count, type, root, MPI_COMM_WORLD);
#endif
    each_sample(memory, extent, seed, read_sample);
    munmap(memory, MEMORY_BYTES);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Datatype dense, gaps;
    MPI_Type_contiguous(UNIT_BYTES, MPI_BYTE, &dense);
    MPI_Type_create_resized(dense, 0, UNIT_EXTENT, &gaps);
    MPI_Type_commit(&dense);
    MPI_Type_commit(&gaps);

    broadcast(CALL_INT_COUNT, UNITS, dense, UNIT_BYTES, 0);
    broadcast(CALL_INT_COUNT, UNITS, gaps, UNIT_EXTENT, check_size() - 1);
#if MPI_VERSION >= 4
    broadcast(CALL_LARGE_COUNT, (MPI_Count)MESSAGE_BYTES, MPI_BYTE, UNIT_BYTES, 0);
#endif
    MPI_Type_free(&dense);
    MPI_Type_free(&gaps);
    check_ok("bcast_large");
    MPI_Finalize();
}
