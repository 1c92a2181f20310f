/* What a long job does in short: broadcasts of any size from any root over communicators that come and go, ranks that pause,
 * processes that fork. All of it follows from the seed, on all ranks alike.
 *
 * Usage: bcast_soak SEED BROADCASTS. Rank 0 prints `SOAK broadcasts=N bytes=N communicators=N forks=N`. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 4, LARGEST_BYTES = 300000 };

static uint64_t seed, drawn;
static MPI_Comm slots[SLOTS];
static uint64_t bytes_in_all, communicators, forks;

static uint64_t draw(uint64_t below) {
    return check_word(seed, drawn++) % below;
}

/* The old communicator goes, another comes: a duplicate, the reverse order, or one of two halves. */
static void replace(int slot) {
    if (slots[slot] != MPI_COMM_WORLD)
        MPI_Comm_free(&slots[slot]);
    switch (draw(3)) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &slots[slot]);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &slots[slot]);
        break;
    default:
        MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, check_rank(), &slots[slot]);
    }
    communicators++;
}

static size_t draw_size(void) {
    switch (draw(4)) {
    case 0:
        return 1 + draw(64);
    case 1:
        return 1 + draw(3000);
    case 2:
        return 1 + draw(40000);
    default:
        return 1 + draw(LARGEST_BYTES);
    }
}

static void broadcast(MPI_Comm comm, size_t bytes, uint64_t at, unsigned char *message) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    uint64_t least = (uint64_t)check_rank(), data;
    /* Halves have other data than each other. */
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, comm);
    data = seed * 1000003 + at * 2 + least;
    int root = (int)(at % (uint64_t)ranks);
    memset(message, CHECK_UNWRITTEN, bytes + 1);
    if (rank == root)
        check_fill(message, bytes, data);
    MPI_Bcast(message, (int)bytes, MPI_BYTE, root, comm);
    char what[96];
    snprintf(what, sizeof what, "broadcast %llu of %zu bytes from %d", (unsigned long long)at, bytes, root);
    check_pattern(message, bytes, data, what);
    if (rank != root)
        check_unwritten(message + bytes, 1, what);
    bytes_in_all += bytes;
}

static void fork_once(void) {
    pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    forks++;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t broadcasts = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
    unsigned char *message = check_allocate(LARGEST_BYTES + 8);
    for (int slot = 0; slot < SLOTS; slot++)
        slots[slot] = MPI_COMM_WORLD;
    for (uint64_t at = 0; at < broadcasts; at++) {
        int slot = (int)draw(SLOTS);
        if (draw(8) == 0)
            replace(slot);
        uint64_t who = draw(16 * (uint64_t)check_size());
        if ((int)who == check_rank())
            usleep(2000);
        if (draw(64) == 0)
            fork_once();
        broadcast(slots[slot], draw_size(), at, message);
    }
    for (int slot = 0; slot < SLOTS; slot++)
        if (slots[slot] != MPI_COMM_WORLD)
            MPI_Comm_free(&slots[slot]);
    free(message);
    if (check_rank() == 0)
        printf("SOAK broadcasts=%llu bytes=%llu communicators=%llu forks=%llu\n",
               (unsigned long long)broadcasts, (unsigned long long)bytes_in_all,
               (unsigned long long)communicators, (unsigned long long)forks);
    check_ok("bcast_soak");
    MPI_Finalize();
}
