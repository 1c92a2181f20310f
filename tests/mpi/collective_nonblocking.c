/* Nonblocking and persistent collectives: the right bytes, many under way at a time, in any order of communicators and of completion.
 *
 * What is started first: a blocking call of each kind, so that all have what they need. Then, in turns:
 *   - all nine functions, in place and not, with basic and derived types, every one under way at once;
 *   - two communicators on which odd and even ranks start in opposite order, and wait in opposite order;
 *   - blocking calls, on the same communicator and on others, while some are under way;
 *   - a communicator that is new after a setting was changed, on which a call must not wait for ranks that start it later;
 *   - a communicator that is freed while a call is under way on it, with the argument `freed`;
 *   - persistent requests, there and on a communicator that had no call before, started again and again (Open MPI 4: MPIX_Bcast_init and its like, MPI 4: MPI_Bcast_init).
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#ifdef OPEN_MPI
#include <mpi-ext.h>
#if defined(OMPI_HAVE_MPI_EXT_PCOLLREQ) && MPI_VERSION < 4
#define MPI_Bcast_init MPIX_Bcast_init
#define MPI_Allreduce_init MPIX_Allreduce_init
#define MPI_Allgatherv_init MPIX_Allgatherv_init
#endif
#endif

enum { MAX_RANKS = 16, FUNCTIONS = 9, ROUNDS = 3 };

static int rank, size;

static uint64_t value(int round, int from, int to, int index) {
    return check_word((uint64_t)(round * 1000003 + from * 1009 + to), (uint64_t)index);
}

static uint64_t *words(size_t count) {
    return check_allocate(count * sizeof(uint64_t));
}

/* The calls that are under way at once, with what they read and write. */
struct under_way {
    int round, count, root;
    uint64_t *message, *sent[FUNCTIONS], *received[FUNCTIONS];
    int counts[MAX_RANKS], places[MAX_RANKS];
    MPI_Request requests[FUNCTIONS];
    MPI_Datatype pairs; /* every second word */
};

/* Reductions add up what all ranks have: words wrap around. */
static uint64_t sum_of(const struct under_way *calls, int index) {
    uint64_t sum = 0;
    for (int from = 0; from < size; from++) {
        sum += value(calls->round, from, 0, index);
    }
    return sum;
}

static void begin(struct under_way *calls, int round, int count, MPI_Comm comm) {
    const int root = round % size, is_in_place = round % 2;
    *calls = (struct under_way){.round = round, .count = count, .root = root};
    for (int i = 0; i < FUNCTIONS; i++) {
        calls->sent[i] = words((size_t)(2 * count * size));
        calls->received[i] = words((size_t)(2 * count * size));
        memset(calls->received[i], CHECK_UNWRITTEN, (size_t)(2 * count * size) * sizeof(uint64_t));
    }
    for (int to = 0; to < size; to++) {
        for (int i = 0; i < count; i++) {
            calls->sent[1][to * count + i] = value(round, root, to, i);
            calls->sent[5][to * count + i] = value(round, rank, to, i);
        }
        /* Not all alike: one word less for the last. */
        calls->counts[to] = to == size - 1 ? count - 1 : count;
        calls->places[to] = to * count;
    }
    for (int i = 0; i < count; i++) {
        calls->sent[2][i] = calls->sent[3][i] = calls->sent[4][i] = calls->sent[6][i] = calls->sent[7][i] =
            value(round, rank, 0, i);
        calls->received[7][i] = calls->sent[7][i];
        calls->received[3][rank * count + i] = calls->sent[3][i];
    }
    MPI_Type_vector(count, 1, 2, MPI_UINT64_T, &calls->pairs);
    MPI_Type_commit(&calls->pairs);
    calls->message = calls->received[0];
    if (rank == root) {
        for (int i = 0; i < count; i++) {
            calls->message[2 * i] = value(round, root, 0, i);
        }
    }
    MPI_Request *next = calls->requests;
    const void *own = is_in_place ? MPI_IN_PLACE : (void *)calls->sent[3];
    MPI_Ibcast(calls->message, 1, calls->pairs, root, comm, next++);
    MPI_Iscatter(calls->sent[1], count, MPI_UINT64_T, calls->received[1], count, MPI_UINT64_T, root, comm,
                 next++);
    MPI_Igather(calls->sent[2], count, MPI_UINT64_T, calls->received[2], count, MPI_UINT64_T, root, comm,
                next++);
    MPI_Iallgather(own, count, MPI_UINT64_T, calls->received[3], count, MPI_UINT64_T, comm, next++);
    /* mpi4py's are gone by then; Open MPI does not mind. */
    int counts[MAX_RANKS], places[MAX_RANKS];
    memcpy(counts, calls->counts, sizeof counts);
    memcpy(places, calls->places, sizeof places);
    MPI_Iallgatherv(calls->sent[4], calls->counts[rank], MPI_UINT64_T, calls->received[4], counts, places,
                    MPI_UINT64_T, comm, next++);
    memset(counts, 0x40, sizeof counts);
    memset(places, 0x40, sizeof places);
    MPI_Ialltoall(calls->sent[5], count, MPI_UINT64_T, calls->received[5], count, MPI_UINT64_T, comm, next++);
    MPI_Ireduce(calls->sent[6], calls->received[6], count, MPI_UINT64_T, MPI_SUM, root, comm, next++);
    MPI_Iallreduce(is_in_place ? MPI_IN_PLACE : (void *)calls->sent[7], calls->received[7], count,
                   MPI_UINT64_T, MPI_SUM, comm, next++);
    MPI_Ibarrier(comm, next++);
    /* The call has the type that it needs. */
    MPI_Type_free(&calls->pairs);
}

static void expect(uint64_t found, uint64_t expected, const char *what, int round, int index) {
    CHECK(found == expected, "%s, round %d: word %d is %llx, expected %llx", what, round, index,
          (unsigned long long)found, (unsigned long long)expected);
}

static void check(struct under_way *calls) {
    const int round = calls->round, count = calls->count, root = calls->root;
    uint64_t unwritten;
    memset(&unwritten, CHECK_UNWRITTEN, sizeof unwritten);
    for (int i = 0; i < count; i++) {
        expect(calls->message[2 * i], value(round, root, 0, i), "Ibcast", round, i);
        if (rank != root) {
            expect(calls->message[2 * i + 1], unwritten, "between Ibcast's elements", round, i);
        }
        expect(calls->received[1][i], value(round, root, rank, i), "Iscatter", round, i);
        if (rank == root) {
            expect(calls->received[6][i], sum_of(calls, i), "Ireduce", round, i);
        }
        expect(calls->received[7][i], sum_of(calls, i), "Iallreduce", round, i);
        for (int from = 0; from < size; from++) {
            const int at = from * count + i;
            if (rank == root) {
                expect(calls->received[2][at], value(round, from, 0, i), "Igather", round, at);
            }
            expect(calls->received[3][at], value(round, from, 0, i), "Iallgather", round, at);
            expect(calls->received[4][at], i < calls->counts[from] ? value(round, from, 0, i) : unwritten,
                   "Iallgatherv", round, at);
            expect(calls->received[5][at], value(round, from, rank, i), "Ialltoall", round, at);
        }
    }
    for (int i = 0; i < FUNCTIONS; i++) {
        free(calls->sent[i]);
        free(calls->received[i]);
    }
}

static void all_at_once(MPI_Comm comm) {
    static const int counts[ROUNDS] = {3, 700, 20000};
    for (int round = 0; round < ROUNDS; round++) {
        struct under_way one, other;
        begin(&one, round, counts[round], comm);
        begin(&other, round + 10, counts[ROUNDS - 1 - round], comm);
        /* The later ones first, one by one. */
        for (int i = FUNCTIONS - 1; i >= 0; i--) {
            MPI_Wait(&other.requests[i], MPI_STATUS_IGNORE);
        }
        MPI_Waitall(FUNCTIONS, one.requests, MPI_STATUSES_IGNORE);
        check(&other);
        check(&one);
    }
}

/* No rank may wait in a call that is started. The second has the ranks of the first the other way round. */
static void in_opposite_order(MPI_Comm first, MPI_Comm second) {
    enum { COUNT = 5000 };
    static uint64_t messages[2][COUNT];
    for (int round = 0; round < 2 * ROUNDS; round++) {
        MPI_Request requests[2];
        MPI_Comm comms[2] = {first, second};
        for (int i = 0; i < 2; i++) {
            const int which = (i + rank) % 2, root = (round + which) % size;
            for (int word = 0; word < COUNT; word++) {
                messages[which][word] = rank == root ? value(round, root, which, word) : 0;
            }
            MPI_Ibcast(messages[which], COUNT, MPI_UINT64_T, which ? size - 1 - root : root, comms[which],
                       &requests[which]);
        }
        if (rank % 3 == 0) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        } else {
            MPI_Wait(&requests[rank % 3 - 1], MPI_STATUS_IGNORE);
            MPI_Wait(&requests[2 - rank % 3], MPI_STATUS_IGNORE);
        }
        for (int which = 0; which < 2; which++) {
            for (int word = 0; word < COUNT; word++) {
                expect(messages[which][word], value(round, (round + which) % size, which, word), "two", round,
                       word);
            }
        }
    }
}

/* While calls are under way: rank 1's part in them is needed by the others, and it is in other calls. */
static void beside_blocking_calls(MPI_Comm comm, MPI_Comm other) {
    struct under_way calls;
    uint64_t sum, mine = (uint64_t)rank + 1;
    begin(&calls, 21, 2000, comm);
    check_broadcast(comm, calls.sent[8], 9000, size - 1, 77, "a broadcast beside nonblocking calls");
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, other);
    expect(sum, (uint64_t)(size * (size + 1) / 2), "an allreduce elsewhere", 21, 0);
    if (rank == 1) {
        MPI_Send(&mine, 1, MPI_UINT64_T, 0, 3, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(&sum, 1, MPI_UINT64_T, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(comm);
    int are_done = 0;
    while (!are_done) {
        MPI_Testall(FUNCTIONS, calls.requests, &are_done, MPI_STATUSES_IGNORE);
    }
    check(&calls);
}

/* Only if asked: Open MPI's own nonblocking collectives end the process with a fault here. */
static void freed_while_under_way(void) {
    enum { COUNT = 30000 };
    static uint64_t message[COUNT];
    for (int round = 0; round < ROUNDS; round++) {
        const int root = round % size;
        MPI_Comm comm;
        MPI_Request request;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        check_broadcast(comm, message, 9000, root, (uint64_t)round, "before the communicator is freed");
        for (int i = 0; i < COUNT; i++) {
            message[i] = rank == root ? value(round, root, 0, i) : 0;
        }
        MPI_Ibcast(message, COUNT, MPI_UINT64_T, root, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            expect(message[i], value(round, root, 0, i), "on a communicator that was freed", round, i);
        }
    }
}

/* Open MPI makes nonblocking calls of its own for it, on the same communicator. */
static void beside_idup(MPI_Comm comm) {
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm copy;
        MPI_Request request;
        uint64_t message[500];
        MPI_Comm_idup(comm, &copy, &request);
        check_broadcast(comm, message, sizeof message, round % size, (uint64_t)round,
                        "a broadcast beside MPI_Comm_idup");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_broadcast(copy, message, sizeof message, 0, (uint64_t)round,
                        "a broadcast on what MPI_Comm_idup made");
        MPI_Comm_free(&copy);
    }
}

/* Ranks attach a communicator together then, but not in a call that only starts something: this rank's successor starts it when it has heard of this
 * one. */
static void on_what_is_new_after_a_change(void) {
    int (*configure)(const char *, const char *);
    *(void **)&configure = dlsym(RTLD_DEFAULT, "polycast_configure");
    if (configure) {
        configure("POLYCAST_TRIALS", "off");
    }
    MPI_Comm copy;
    MPI_Request request;
    uint64_t message[4000], sum = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    check_fill(message, sizeof message, rank == 0 ? 77 : 78);
    if (rank > 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, rank - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Ibcast(message, (int)sizeof message, MPI_BYTE, 0, copy, &request);
    if (rank < size - 1) {
        MPI_Send(NULL, 0, MPI_BYTE, rank + 1, 5, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_pattern(message, sizeof message, 77, "a broadcast started after a setting was changed");
    MPI_Allreduce(&(uint64_t){1}, &sum, 1, MPI_UINT64_T, MPI_SUM, copy);
    CHECK(sum == (uint64_t)size, "the next call: %d ranks make %d", size, (int)sum);
    MPI_Comm_free(&copy);
}

#ifdef MPI_Bcast_init
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT (MPI_VERSION >= 4)
#endif

static void persistent(MPI_Comm comm) {
#if HAS_PERSISTENT
    enum { COUNT = 3000, STARTS = 4 };
    static uint64_t message[COUNT], mine[COUNT], all[COUNT];
    int counts[MAX_RANKS], places[MAX_RANKS];
    uint64_t *blocks = words((size_t)(COUNT * size));
    MPI_Request requests[3];
    for (int i = 0; i < size; i++) {
        counts[i] = COUNT;
        places[i] = i * COUNT;
    }
    MPI_Bcast_init(message, COUNT, MPI_UINT64_T, size - 1, comm, MPI_INFO_NULL, &requests[0]);
    MPI_Allreduce_init(mine, all, COUNT, MPI_UINT64_T, MPI_SUM, comm, MPI_INFO_NULL, &requests[1]);
    MPI_Allgatherv_init(mine, COUNT, MPI_UINT64_T, blocks, counts, places, MPI_UINT64_T, comm, MPI_INFO_NULL,
                        &requests[2]);
    for (int start = 0; start < STARTS; start++) {
        for (int i = 0; i < COUNT; i++) {
            message[i] = rank == size - 1 ? value(start, 5, 5, i) : 0;
            mine[i] = value(start, rank, 0, i);
        }
        MPI_Startall(3, requests);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < COUNT; i++) {
            uint64_t sum = 0;
            for (int from = 0; from < size; from++) {
                sum += value(start, from, 0, i);
                expect(blocks[from * COUNT + i], value(start, from, 0, i), "Allgatherv_init", start, i);
            }
            expect(message[i], value(start, 5, 5, i), "Bcast_init", start, i);
            expect(all[i], sum, "Allreduce_init", start, i);
        }
    }
    for (int i = 0; i < 3; i++) {
        MPI_Request_free(&requests[i]);
    }
    free(blocks);
#else
    (void)comm;
#endif
}

int main(int argc, char **argv) {
    MPI_Comm other, fresh;
    MPI_Init(&argc, &argv);
    rank = check_rank();
    size = check_size();
    CHECK(size >= 2 && size <= MAX_RANKS, "needs 2 to %d ranks, has %d", MAX_RANKS, size);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &other);
    /* Once without what the ranks must agree on, and again when they had reason to. */
    for (int time = 0; time < 2; time++) {
        all_at_once(MPI_COMM_WORLD);
        in_opposite_order(MPI_COMM_WORLD, other);
        beside_blocking_calls(MPI_COMM_WORLD, other);
    }
    if (argc > 1 && strcmp(argv[1], "freed") == 0) {
        freed_while_under_way();
    }
    beside_idup(MPI_COMM_WORLD);
    persistent(MPI_COMM_WORLD);
    MPI_Comm_dup(MPI_COMM_WORLD, &fresh);
    persistent(fresh);
    MPI_Comm_free(&fresh);
    on_what_is_new_after_a_change();
    MPI_Comm_free(&other);
    check_ok("collective_nonblocking");
    MPI_Finalize();
}
