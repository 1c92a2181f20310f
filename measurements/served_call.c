/*
 * What a served broadcast takes of polycast's own: one rank of two, over a door whose messages are there at once. Prints nanoseconds per
 * call, the smallest of several rounds, for the root and for the other rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "polycast.h"

#define SLOTS 64
#define CALLS 100000
#define ROUNDS 15

struct message {
    void *place; /* NULL: it goes out */
    size_t room;
};

static struct message started[SLOTS];
static uint32_t in_use[SLOTS];
static uint32_t count;
static uint64_t bytes_of_call;

static int allgather(void *communicator, const void *mine, void *all, size_t bytes) {
    (void)communicator;
    memcpy(all, mine, bytes);
    memcpy((char *)all + bytes, mine, bytes);
    return 0;
}

static int stock_broadcast(void *communicator, void *buffer, size_t bytes, int root) {
    (void)communicator, (void)buffer, (void)bytes, (void)root;
    return 0;
}

static int intersect(void *communicator, uint64_t *words, size_t number) {
    (void)communicator, (void)words, (void)number;
    return 0;
}

static const int both[] = {0, 1};

static int world_ranks(void *communicator, int *ranks) {
    (void)communicator;
    memcpy(ranks, both, sizeof both);
    return 0;
}

static int start(uint32_t slot, struct message message) {
    if (slot >= SLOTS || count == SLOTS) {
        return 1;
    }
    started[slot] = message;
    in_use[count++] = slot;
    return 0;
}

static int isend(void *communicator, const void *buffer, size_t bytes, int peer, int tag, uint32_t slot) {
    (void)communicator, (void)buffer, (void)bytes, (void)peer, (void)tag;
    return start(slot, (struct message){NULL, 0});
}

static int irecv(void *communicator, void *buffer, size_t bytes, int peer, int tag, uint32_t slot) {
    (void)communicator, (void)peer, (void)tag;
    return start(slot, (struct message){buffer, bytes});
}

/* A lane begins with the size of all; the data that goes with it is what the buffer has. */
static int poll(void *communicator, polycast_completion *completions, uint32_t *completed) {
    (void)communicator;
    for (uint32_t i = 0; i < count; i++) {
        const struct message *message = &started[in_use[i]];
        const size_t with_size = sizeof bytes_of_call + bytes_of_call;
        const size_t bytes = message->room < with_size ? message->room : with_size;
        completions[i] = (polycast_completion){.slot = in_use[i], .bytes = bytes};
        if (message->place) {
            memcpy(message->place, &bytes_of_call, sizeof bytes_of_call);
        }
    }
    *completed = count;
    count = 0;
    return 0;
}

/* Nothing is in flight where all is there at once. */
static void cancel(void *communicator, const uint32_t *slots, uint32_t number) {
    (void)communicator, (void)slots, (void)number;
}

static void nothing(void *communicator) {
    (void)communicator;
}

static int sum_over_world(uint64_t *values, size_t number) {
    (void)values, (void)number;
    return 0;
}

static void take_leave(void) {
}

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int serve(polycast_communicator *communicator, const polycast_call *call, void *buffer) {
    struct polycast_plan *plan;
    if (polycast_plan(communicator, call, &plan) != POLYCAST_SERVED) {
        return -1;
    }
    int code = polycast_run(plan, buffer, buffer);
    polycast_plan_free(plan);
    return code;
}

int main(void) {
    static const polycast_door door = {
        .interface_version = POLYCAST_INTERFACE_VERSION,
        .capabilities = POLYCAST_CAN_PACK,
        .allgather = allgather,
        .broadcast = stock_broadcast,
        .intersect = intersect,
        .world_ranks = world_ranks,
        .isend = isend,
        .irecv = irecv,
        .poll = poll,
        .cancel = cancel,
        .close = nothing,
        .sum_over_world = sum_over_world,
        .take_leave = take_leave,
    };
    const polycast_call call = {.collective = POLYCAST_BROADCAST, .root = 0, .bytes = 8192};
    char *buffer = calloc(1, call.bytes);
    polycast_set("POLYCAST_BCAST", "binomial");
    bytes_of_call = call.bytes;
    if (!polycast_begin(&door, NULL, 0, 2, 32767, 0)) {
        return fprintf(stderr, "expected to begin\n"), 1;
    }
    for (int rank = 0; rank < 2; rank++) {
        polycast_communicator *communicator;
        uint32_t counts[8] = {0};
        double least = 1e18;
        if (polycast_attach(&door, NULL, rank, 2, both, counts, &communicator) || !communicator) {
            return fprintf(stderr, "expected to attach\n"), 1;
        }
        for (int round = 0; round < ROUNDS; round++) {
            const double begin = nanoseconds();
            for (int i = 0; i < CALLS; i++) {
                const int code = serve(communicator, &call, buffer);
                if (code) {
                    return fprintf(stderr, "rank %d: expected a served call, found code %d\n", rank, code), 1;
                }
            }
            const double took = (nanoseconds() - begin) / CALLS;
            least = took < least ? took : least;
        }
        printf("%-8s %6.0f ns per served broadcast of %zu bytes\n", rank ? "receiver" : "root", least,
               call.bytes);
        polycast_detach(communicator, 0);
    }
    free(buffer);
    return 0;
}
