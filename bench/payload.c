#include "payload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Windows of the pattern: a prime, so that they do not fall into step with block sizes. Those of the blocks of one call are all
 * different on up to 256 ranks. */
enum { WINDOWS = 65537, RANKS_APART = 256, REPETITIONS_APART = 40503 };

/* What a core can use of the last cache: some systems tell the sum over all of them, others nothing. */
enum { MAX_CACHE_BYTES = 32 << 20 };

/* Twice the last cache: what is read of it takes the place of everything. */
static size_t bytes_that_empty_caches(void) {
    const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return 2 * (size_t)(bytes > 0 && bytes < MAX_CACHE_BYTES ? bytes : MAX_CACHE_BYTES);
}

static void empty_caches(struct payload *payload) {
    enum { LINE_BYTES = 64 };
    for (size_t i = 0; i < payload->other_bytes; i += LINE_BYTES)
        payload->other[i]++;
}

bool payload_open(struct payload *payload, size_t capacity, bool is_cold) {
    payload->send = malloc(capacity + 1);
    payload->receive = malloc(capacity + 1);
    payload->pattern = malloc(capacity + WINDOWS);
    payload->other_bytes = is_cold ? bytes_that_empty_caches() : 0;
    payload->other = is_cold ? calloc(payload->other_bytes, 1) : NULL;
    if (!payload->send || !payload->receive || !payload->pattern || (is_cold && !payload->other)) {
        payload_close(payload);
        return false;
    }
    /* xorshift64: all ranks draw the same bytes. */
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < capacity + WINDOWS; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        payload->pattern[i] = (unsigned char)(state >> 32);
    }
    return true;
}

void payload_close(struct payload *payload) {
    free(payload->send);
    free(payload->receive);
    free(payload->pattern);
    free(payload->other);
    payload->send = payload->receive = payload->pattern = payload->other = NULL;
}

/* What `source` has for `destination`. */
static const unsigned char *window(const struct payload *payload, int64_t repetition, int source,
                                   int destination) {
    return payload->pattern +
           (repetition * REPETITIONS_APART + source + (int64_t)destination * RANKS_APART) % WINDOWS;
}

static bool is_reduction(const struct call *call) {
    return call->collective == REDUCE || call->collective == ALLREDUCE;
}

/* A rank's factor, below 2^20: with the byte that it is multiplied by, a sum over 2^24 ranks is exact. */
static double factor(int rank) {
    return (double)(1 + ((uint32_t)rank * 2654435761u >> 12));
}

static double sum_of_factors(int ranks) {
    double sum = 0;
    for (int rank = 0; rank < ranks; rank++)
        sum += factor(rank);
    return sum;
}

/* `times` the numbers of the repetition, which are never 0. */
static void fill_numbers(const struct payload *payload, const struct call *call, int64_t repetition,
                         double times, unsigned char *into) {
    const unsigned char *numbers = window(payload, repetition, 0, 0);
    double *elements = (double *)(void *)into;
    for (size_t i = 0; i < call_room(call) / sizeof(double); i++)
        elements[i] = times * (1.0 + numbers[i]);
}

static bool numbers_are(const struct payload *payload, const struct call *call, int64_t repetition,
                        double times) {
    const unsigned char *numbers = window(payload, repetition, 0, 0);
    const double *elements = (const double *)(const void *)payload->receive;
    for (size_t i = 0; i < call_room(call) / sizeof(double); i++) {
        if (elements[i] != times * (1.0 + numbers[i]))
            return false;
    }
    return true;
}

/* Blocks of data that a rank has or gets: from `source` to `destination`, at `offset` of its buffer. */
struct piece {
    int source;
    int destination;
    size_t offset;
    size_t bytes;
};

/* How many pieces this rank gets. */
static int received_pieces(const struct call *call) {
    const bool is_root = call->rank == call->root;
    switch (call->collective) {
    case BCAST:
    case SCATTER:
        return 1;
    case GATHER:
        return is_root ? call->ranks : 0;
    case ALLGATHER:
    case ALLGATHERV:
    case ALLTOALL:
        return call->ranks;
    default:
        return 0;
    }
}

static struct piece received_piece(const struct call *call, int index) {
    const size_t offset = (size_t)call->offsets[index], bytes = (size_t)call->counts[index];
    switch (call->collective) {
    case BCAST:
        return (struct piece){call->root, 0, 0, (size_t)call->bytes};
    case SCATTER:
        return (struct piece){call->root, call->rank, 0, (size_t)call->counts[call->rank]};
    case ALLTOALL:
        return (struct piece){index, call->rank, offset, bytes};
    default:
        return (struct piece){index, 0, offset, bytes};
    }
}

/* Everything that this rank is to send. */
static void fill_send(struct payload *payload, const struct call *call, int64_t repetition) {
    const int rank = call->rank;
    switch (call->collective) {
    case SCATTER:
    case ALLTOALL:
        for (int peer = 0; peer < call->ranks && (call->collective == ALLTOALL || rank == call->root); peer++)
            memcpy(payload->send + call->offsets[peer], window(payload, repetition, rank, peer),
                   (size_t)call->counts[peer]);
        break;
    case GATHER:
    case ALLGATHER:
    case ALLGATHERV:
        memcpy(payload->send, window(payload, repetition, rank, 0), (size_t)call->counts[rank]);
        break;
    case REDUCE:
    case ALLREDUCE:
        fill_numbers(payload, call, repetition, factor(rank), payload->send);
        break;
    default:
        break;
    }
}

static bool receives_numbers(const struct call *call) {
    return call->collective == ALLREDUCE || (call->collective == REDUCE && call->rank == call->root);
}

static void fill(struct payload *payload, const struct call *call, int64_t repetition) {
    fill_send(payload, call, repetition);
    if (call->collective == BCAST && call->rank == call->root) {
        memcpy(payload->receive, window(payload, repetition, call->root, 0), (size_t)call->bytes);
        return;
    }
    if (is_reduction(call)) {
        fill_numbers(payload, call, repetition, -1, payload->receive);
        return;
    }
    /* The complement: a byte that was not delivered cannot be right by chance, at any size. */
    for (int index = 0; index < received_pieces(call); index++) {
        const struct piece piece = received_piece(call, index);
        const unsigned char *data = window(payload, repetition, piece.source, piece.destination);
        unsigned char *into = payload->receive + piece.offset;
        for (size_t i = 0; i < piece.bytes; i++)
            into[i] = (unsigned char)~data[i];
    }
}

void payload_prepare(struct payload *payload, const struct call *call, int64_t repetition) {
    fill(payload, call, repetition);
    empty_caches(payload);
}

void payload_corrupt(struct payload *payload, const struct call *call) {
    if (call_room(call) > 0)
        payload->receive[0] ^= 1;
}

bool payload_is_right(const struct payload *payload, const struct call *call, int64_t repetition) {
    if (receives_numbers(call) && !numbers_are(payload, call, repetition, sum_of_factors(call->ranks)))
        return false;
    for (int index = 0; index < received_pieces(call); index++) {
        const struct piece piece = received_piece(call, index);
        const unsigned char *data = window(payload, repetition, piece.source, piece.destination);
        if (memcmp(payload->receive + piece.offset, data, piece.bytes) != 0)
            return false;
    }
    return true;
}
