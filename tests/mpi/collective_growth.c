/* Communicators made, used and freed by the thousand: neither memory, nor mappings, nor open files grow.
 *
 * Usage: collective_growth [ROUNDS]     what is there after half of them is compared with the end */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* A page or two are the MPI's own, whose mappings come and go, too. 2000 communicators that kept a page each would be 8 MiB. */
enum { LARGEST_BYTES = 64 << 10, NUMBERS = 128, ALLOWED_KIB = 512, ALLOWED_MAPPINGS = 8 };

typedef struct {
    long kib, mappings, files;
} Footprint;

static Footprint footprint(void) {
    Footprint found = {.kib = check_resident_kib()};
    FILE *maps = fopen("/proc/self/maps", "r");
    DIR *files = opendir("/proc/self/fd");
    CHECK(maps && files, "cannot read /proc/self");
    for (int c; (c = fgetc(maps)) != EOF;)
        found.mappings += c == '\n';
    while (readdir(files))
        found.files++;
    fclose(maps);
    closedir(files);
    return found;
}

/* One communicator: all ranks, or those of the same parity, or the upper ranks in reverse order. */
static MPI_Comm one_of(int round) {
    int rank = check_rank(), size = check_size();
    MPI_Comm comm;
    if (round % 3 == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else if (round % 3 == 1)
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    else
        MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2 ? MPI_UNDEFINED : 0, -rank, &comm);
    return comm;
}

static void use(MPI_Comm comm, int round, unsigned char *data, unsigned char *of_all) {
    int size, rank;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    const int root = round % size;
    const int bytes = round % 10 == 0 ? LARGEST_BYTES : 1 << round % 13;
    if (rank == root)
        memset(data, round % 251, (size_t)bytes);
    MPI_Bcast(data, bytes, MPI_BYTE, root, comm);
    if (data[0] != round % 251 || data[bytes - 1] != round % 251)
        check_fail("round %d: a broadcast is wrong", round);
    long mine[NUMBERS], sums[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        mine[i] = rank + i;
    MPI_Allreduce(mine, sums, NUMBERS, MPI_LONG, MPI_SUM, comm);
    if (sums[NUMBERS - 1] != (long)size * (size - 1) / 2 + (long)size * (NUMBERS - 1))
        check_fail("round %d: a sum is wrong", round);
    memset(data, rank, (size_t)bytes);
    MPI_Allgather(data, bytes, MPI_BYTE, of_all, bytes, MPI_BYTE, comm);
    if (of_all[(size_t)size * (size_t)bytes - 1] != size - 1)
        check_fail("round %d: an allgather is wrong", round);
    MPI_Barrier(comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int rounds = argc > 1 ? atoi(argv[1]) : 1000;
    unsigned char *data = check_allocate(LARGEST_BYTES);
    unsigned char *of_all = check_allocate((size_t)check_size() * LARGEST_BYTES);
    Footprint middle = {0};
    for (int round = 0; round < rounds; round++) {
        if (round == rounds / 2)
            middle = footprint();
        MPI_Comm comm = one_of(round);
        if (comm == MPI_COMM_NULL)
            continue;
        use(comm, round, data, of_all);
        MPI_Comm_free(&comm);
    }
    const Footprint end = footprint();
    const long grown_kib = end.kib - middle.kib, mappings = end.mappings - middle.mappings,
               files = end.files - middle.files;
    CHECK(grown_kib <= ALLOWED_KIB && mappings <= ALLOWED_MAPPINGS && files <= 0,
          "%d communicators: memory grew by %ld KiB, mappings by %ld, open files by %ld", rounds - rounds / 2,
          grown_kib, mappings, files);
    check_ok("collective_growth");
    MPI_Finalize();
}
