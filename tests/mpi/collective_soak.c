/* What a long job does in short: eight collectives of any size from any root over communicators that come and go, ranks that pause,
 * processes that fork, threads that call at once. All of it follows from the seed, on all ranks alike, so everybody knows what
 * everybody has to have.
 *
 * Usage: collective_soak SEED CALLS [THREADS [NEW]]. Rank 0 prints `SOAK calls=N bytes=N communicators=N forks=N`. Of several threads
 * each has its own communicators, for all of the time. With NEW not 0 each call is a short one on a new communicator. */
#include "check.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 4, LARGEST_BYTES = 300000, MAX_WORDS = 3000, MAX_RANKS = 64, MAX_THREADS = 8 };

enum operation { BCAST, SCATTER, GATHER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, BARRIER, OPERATIONS };

static const char *const NAMES[OPERATIONS] = {"broadcast", "scatter", "gather",    "allgather",
                                              "alltoall",  "reduce",  "allreduce", "barrier"};

/* A communicator, and who its ranks are in MPI_COMM_WORLD. */
struct slot {
    MPI_Comm comm;
    int rank, ranks, members[MAX_RANKS];
};

struct worker {
    pthread_t thread;
    uint64_t seed, drawn, calls;
    bool is_alone, is_new_each;
    struct slot slots[SLOTS];
    uint64_t *sent, *received, bytes, communicators, forks;
};

static uint64_t draw(struct worker *w, uint64_t below) {
    return check_word(w->seed, w->drawn++) % below;
}

static void take(struct slot *slot, MPI_Comm comm) {
    MPI_Group group, world;
    int places[MAX_RANKS];
    slot->comm = comm;
    MPI_Comm_rank(comm, &slot->rank);
    MPI_Comm_size(comm, &slot->ranks);
    CHECK(slot->ranks <= MAX_RANKS, "expected at most %d ranks, found %d", MAX_RANKS, slot->ranks);
    for (int i = 0; i < slot->ranks; i++)
        places[i] = i;
    MPI_Comm_group(comm, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_translate_ranks(group, slot->ranks, places, world, slot->members);
    MPI_Group_free(&group);
    MPI_Group_free(&world);
}

static void give_back(struct slot *slot) {
    if (slot->comm != MPI_COMM_WORLD)
        MPI_Comm_free(&slot->comm);
}

/* The old communicator goes, another comes: a duplicate, the reverse order, or one of two halves. */
static void replace(struct worker *w, struct slot *slot) {
    MPI_Comm comm;
    give_back(slot);
    switch (draw(w, 3)) {
    case 0:
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        break;
    case 1:
        MPI_Comm_split(MPI_COMM_WORLD, 0, -check_rank(), &comm);
        break;
    default:
        MPI_Comm_split(MPI_COMM_WORLD, check_rank() % 2, check_rank(), &comm);
    }
    take(slot, comm);
    w->communicators++;
}

static size_t draw_size(struct worker *w) {
    if (w->is_new_each)
        return 1 + draw(w, draw(w, 8) == 0 ? 40000 : 3000);
    switch (draw(w, 4)) {
    case 0:
        return 1 + draw(w, 64);
    case 1:
        return 1 + draw(w, 3000);
    case 2:
        return 1 + draw(w, 40000);
    default:
        return 1 + draw(w, LARGEST_BYTES);
    }
}

static void broadcast(struct worker *w, const struct slot *slot, size_t bytes, uint64_t at) {
    unsigned char *message = (unsigned char *)w->received;
    const int root = (int)(at % (uint64_t)slot->ranks);
    const uint64_t data = w->seed * 1000003 + at * MAX_RANKS + (uint64_t)slot->members[root];
    memset(message, CHECK_UNWRITTEN, bytes + 1);
    if (slot->rank == root)
        check_fill(message, bytes, data);
    MPI_Bcast(message, (int)bytes, MPI_BYTE, root, slot->comm);
    char what[96];
    snprintf(what, sizeof what, "broadcast %llu of %zu bytes from %d", (unsigned long long)at, bytes, root);
    check_pattern(message, bytes, data, what);
    if (slot->rank != root)
        check_unwritten(message + bytes, 1, what);
    w->bytes += bytes;
}

/* The word that a rank has for another, or for all. */
static uint64_t word(const struct worker *w, uint64_t at, int from, int to, size_t index) {
    return check_word(w->seed * 1000003 + at, (uint64_t)from << 40 | (uint64_t)to << 24 | index);
}

/* What block `block` of the result has at `index`. */
static uint64_t expected(const struct worker *w, const struct slot *slot, enum operation operation,
                         uint64_t at, int root, int block, size_t index) {
    uint64_t sum = 0;
    switch (operation) {
    case SCATTER:
        return word(w, at, slot->members[root], slot->rank, index);
    case ALLTOALL:
        return word(w, at, slot->members[block], slot->rank, index);
    case REDUCE:
    case ALLREDUCE:
        for (int i = 0; i < slot->ranks; i++)
            sum += word(w, at, slot->members[i], 0, index);
        return sum;
    default:
        return word(w, at, slot->members[block], 0, index);
    }
}

static void exchange(struct worker *w, const struct slot *slot, enum operation operation, size_t words,
                     uint64_t at) {
    const int root = (int)(at % (uint64_t)slot->ranks), n = (int)words, ranks = slot->ranks;
    const bool is_root = slot->rank == root;
    uint64_t *sent = w->sent, *received = w->received;
    const int sent_blocks = operation == ALLTOALL || operation == SCATTER ? ranks : 1;
    const int blocks = operation == GATHER || operation == ALLGATHER || operation == ALLTOALL ? ranks : 1;
    const bool has_result = is_root || (operation != GATHER && operation != REDUCE);
    for (int block = 0; block < sent_blocks; block++)
        for (size_t i = 0; i < words; i++)
            sent[(size_t)block * words + i] = word(w, at, check_rank(), block, i);
    memset(received, CHECK_UNWRITTEN, ((size_t)blocks * words + 1) * sizeof *received);
    switch (operation) {
    case SCATTER:
        MPI_Scatter(sent, n, MPI_UINT64_T, received, n, MPI_UINT64_T, root, slot->comm);
        break;
    case GATHER:
        MPI_Gather(sent, n, MPI_UINT64_T, received, n, MPI_UINT64_T, root, slot->comm);
        break;
    case ALLGATHER:
        MPI_Allgather(sent, n, MPI_UINT64_T, received, n, MPI_UINT64_T, slot->comm);
        break;
    case ALLTOALL:
        MPI_Alltoall(sent, n, MPI_UINT64_T, received, n, MPI_UINT64_T, slot->comm);
        break;
    case REDUCE:
        MPI_Reduce(sent, received, n, MPI_UINT64_T, MPI_SUM, root, slot->comm);
        break;
    case ALLREDUCE:
        MPI_Allreduce(sent, received, n, MPI_UINT64_T, MPI_SUM, slot->comm);
        break;
    default:
        MPI_Barrier(slot->comm);
        return;
    }
    for (int block = 0; has_result && block < blocks; block++)
        for (size_t i = 0; i < words; i++) {
            const uint64_t found = received[(size_t)block * words + i],
                           right = expected(w, slot, operation, at, root, block, i);
            CHECK(found == right,
                  "%s %llu of %zu words, root %d: block %d, word %zu: expected %llx, found %llx",
                  NAMES[operation], (unsigned long long)at, words, root, block, i, (unsigned long long)right,
                  (unsigned long long)found);
        }
    char what[96];
    snprintf(what, sizeof what, "behind %s %llu", NAMES[operation], (unsigned long long)at);
    check_unwritten(received + (has_result ? (size_t)blocks * words : 0), sizeof *received, what);
    w->bytes += words * sizeof *sent;
}

static void fork_once(struct worker *w) {
    pid_t child = fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    w->forks++;
}

static void *work(void *argument) {
    struct worker *w = argument;
    for (uint64_t at = 0; at < w->calls; at++) {
        struct slot *slot = &w->slots[draw(w, SLOTS)];
        if ((draw(w, 8) == 0 || w->is_new_each) && w->is_alone)
            replace(w, slot);
        if ((int)draw(w, 16 * (uint64_t)check_size()) == check_rank())
            usleep(2000);
        if (draw(w, 64) == 0 && w->is_alone)
            fork_once(w);
        /* Half of the calls are broadcasts. */
        const enum operation operation = draw(w, 2) == 0 ? BCAST : (enum operation)draw(w, OPERATIONS);
        const size_t bytes = draw_size(w);
        if (operation == BCAST)
            broadcast(w, slot, bytes, at);
        else
            exchange(w, slot, operation, bytes % MAX_WORDS + 1, at);
    }
    return NULL;
}

int main(int argc, char **argv) {
    static struct worker workers[MAX_THREADS];
    const int threads = argc > 3 ? atoi(argv[3]) : 1;
    int provided;
    MPI_Init_thread(&argc, &argv, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    CHECK(threads >= 1 && threads <= MAX_THREADS, "expected 1 to %d threads, found %d", MAX_THREADS, threads);
    CHECK(threads == 1 || provided == MPI_THREAD_MULTIPLE, "the library provides thread level %d only",
          provided);
    struct worker all = {0};
    for (int t = 0; t < threads; t++) {
        struct worker *w = &workers[t];
        w->seed = (argc > 1 ? strtoull(argv[1], NULL, 10) : 0) * MAX_THREADS + (uint64_t)t;
        w->calls = argc > 2 ? strtoull(argv[2], NULL, 10) : 300;
        w->is_alone = threads == 1;
        w->is_new_each = argc > 4 && atoi(argv[4]) != 0;
        w->sent = check_allocate((size_t)MAX_RANKS * MAX_WORDS * sizeof *w->sent);
        w->received = check_allocate(((size_t)MAX_RANKS * MAX_WORDS + 1) * sizeof *w->received);
        for (int slot = 0; slot < SLOTS; slot++) {
            MPI_Comm comm = MPI_COMM_WORLD;
            if (threads > 1)
                MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            take(&w->slots[slot], comm);
        }
    }
    for (int t = 1; t < threads; t++)
        CHECK(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0, "no thread");
    work(&workers[0]);
    for (int t = 0; t < threads; t++) {
        struct worker *w = &workers[t];
        if (t > 0)
            pthread_join(w->thread, NULL);
        for (int slot = 0; slot < SLOTS; slot++)
            give_back(&w->slots[slot]);
        free(w->sent);
        free(w->received);
        all.calls += w->calls;
        all.bytes += w->bytes;
        all.communicators += w->communicators;
        all.forks += w->forks;
    }
    if (check_rank() == 0)
        printf("SOAK calls=%llu bytes=%llu communicators=%llu forks=%llu\n", (unsigned long long)all.calls,
               (unsigned long long)all.bytes, (unsigned long long)all.communicators,
               (unsigned long long)all.forks);
    check_ok("collective_soak");
    MPI_Finalize();
}
