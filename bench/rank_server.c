#include "rank_server.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_clock.h"
#include "flow.h"
#include "nap.h"
#include "order.h"
#include "pair.h"
#include "place.h"

enum { TAG_ORDER = 1, TAG_VALUES = 2, TAG_READY = 3, TAG_GO = 4 };

enum { MAX_VALUES = 3 * MAX_SAMPLES, MAX_LINE = 2048 };

/* A rank that is needed again soon looks often; one that slept for long costs nobody anything. */
static const int64_t FIRST_NAP_NS = 100 * 1000, LONGEST_NAP_NS = 20 * 1000 * 1000;

struct member {
    MPI_Comm comm;
    int rank;
    int ranks;
    unsigned char *buffer;
    size_t capacity;
    int64_t values[MAX_VALUES];
};

/* How many numbers `rank` has to say about an order. */
static int value_count(const struct order *order, struct way way, int rank) {
    switch (order->kind) {
    case ORDER_STREAM:
        return order->samples;
    case ORDER_PINGPONG:
        return rank == way.from ? 3 * order->samples : 0;
    case ORDER_FLOWS:
        return rank == way.to ? 2 : 0;
    default:
        return 0;
    }
}

static void make_room(struct member *member, size_t bytes) {
    if (bytes <= member->capacity)
        return;
    unsigned char *larger = realloc(member->buffer, bytes);
    if (!larger) {
        fprintf(stderr, "polycast: rank %d has no memory for messages of %zu bytes\n", member->rank, bytes);
        MPI_Abort(member->comm, 1);
    }
    /* Pages that were never written are all one page of zeros, which is read faster than data is. */
    memset(larger + member->capacity, 0x5a, bytes - member->capacity);
    member->buffer = larger;
    member->capacity = bytes;
}

/* Flows begin together: when rank 0 knows that all are ready, it says go. */
static void begin_together(struct member *member, const struct order *order) {
    if (member->rank != 0) {
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG_READY, member->comm);
        nap_until_message(0, TAG_GO, member->comm, FIRST_NAP_NS, FIRST_NAP_NS);
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_GO, member->comm, MPI_STATUS_IGNORE);
        return;
    }
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 2 * order->way_count; i++) {
            const int rank = i % 2 == 0 ? order->ways[i / 2].from : order->ways[i / 2].to;
            if (rank == 0)
                continue;
            if (step == 1) {
                MPI_Send(NULL, 0, MPI_BYTE, rank, TAG_GO, member->comm);
                continue;
            }
            nap_until_message(rank, TAG_READY, member->comm, FIRST_NAP_NS, LONGEST_NAP_NS);
            MPI_Recv(NULL, 0, MPI_BYTE, rank, TAG_READY, member->comm, MPI_STATUS_IGNORE);
        }
    }
}

/* The way that `rank` is on; from a rank and to a rank that do not exist if it is on none. */
static struct way way_of(const struct order *order, int rank) {
    for (int i = 0; i < order->way_count; i++) {
        if (rank == order->ways[i].from || rank == order->ways[i].to)
            return order->ways[i];
    }
    return (struct way){-1, -1};
}

static void play(struct member *member, const struct order *order, struct way way) {
    make_room(member, (size_t)order->bytes * (order->kind == ORDER_FLOWS ? FLOW_UNDER_WAY : 1));
    if (order->kind == ORDER_STREAM)
        pair_stream(order, member->rank, member->comm, member->buffer, member->values);
    else if (order->kind == ORDER_PINGPONG)
        pair_pingpong(order, member->rank, member->comm, member->buffer, member->values);
    else
        flow_run(order, way, member->rank, member->comm, member->buffer, member->values);
}

static void follow(struct member *member) {
    for (;;) {
        struct order order;
        nap_until_message(0, TAG_ORDER, member->comm, FIRST_NAP_NS, LONGEST_NAP_NS);
        MPI_Recv(&order, sizeof order, MPI_BYTE, 0, TAG_ORDER, member->comm, MPI_STATUS_IGNORE);
        if (order.kind == ORDER_END)
            return;
        if (order.kind == ORDER_FLOWS)
            begin_together(member, &order);
        const struct way way = way_of(&order, member->rank);
        play(member, &order, way);
        const int count = value_count(&order, way, member->rank);
        if (count > 0)
            MPI_Send(member->values, count, MPI_INT64_T, 0, TAG_VALUES, member->comm);
    }
}

static void write_values(const int64_t *values, int count) {
    for (int i = 0; i < count; i++)
        printf(" %lld", (long long)values[i]);
}

/* Rank 0 writes what the ranks of an order have to say, sender before receiver, flow after flow. Its own values are
 * in place when it had a role. */
static void write_answer(struct member *member, const struct order *order) {
    static int64_t received[MAX_VALUES];
    printf("answer");
    for (int i = 0; i < 2 * order->way_count; i++) {
        const struct way way = order->ways[i / 2];
        const int rank = i % 2 == 0 ? way.from : way.to;
        const int count = value_count(order, way, rank);
        if (count == 0)
            continue;
        if (rank == 0) {
            write_values(member->values, count);
            continue;
        }
        nap_until_message(rank, TAG_VALUES, member->comm, FIRST_NAP_NS, LONGEST_NAP_NS);
        MPI_Recv(received, count, MPI_INT64_T, rank, TAG_VALUES, member->comm, MPI_STATUS_IGNORE);
        write_values(received, count);
    }
    putchar('\n');
    fflush(stdout);
}

static void tell(const struct member *member, const struct order *order) {
    for (int rank = 1; rank < member->ranks; rank++) {
        bool is_meant = order->kind == ORDER_END;
        for (int i = 0; i < order->way_count; i++)
            is_meant = is_meant || order->ways[i].from == rank || order->ways[i].to == rank;
        if (is_meant)
            MPI_Send(order, sizeof *order, MPI_BYTE, rank, TAG_ORDER, member->comm);
    }
}

static bool lead(struct member *member) {
    const struct order last = {.kind = ORDER_END};
    char line[MAX_LINE];
    const char *expected = NULL;
    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        struct order order;
        expected = order_read(&order, line, member->ranks);
        if (expected || order.kind == ORDER_END)
            break;
        tell(member, &order);
        if (order.kind == ORDER_FLOWS)
            begin_together(member, &order);
        const struct way way = way_of(&order, member->rank);
        if (way.from == member->rank || way.to == member->rank)
            play(member, &order, way);
        write_answer(member, &order);
    }
    tell(member, &last);
    if (expected)
        printf("error order %.*s: expected %s\n", (int)strcspn(line, "\n"), line, expected);
    return expected == NULL;
}

bool rank_server_run(MPI_Comm comm) {
    static struct member member;
    struct common_clock clock;
    bool able = true;
    member.comm = comm;
    MPI_Comm_rank(comm, &member.rank);
    MPI_Comm_size(comm, &member.ranks);
    clock_open(&clock, comm, false);
    place_write(comm, clock.kernel);
    clock_close(&clock);
    if (member.rank == 0)
        able = lead(&member);
    else
        follow(&member);
    free(member.buffer);
    return able;
}
