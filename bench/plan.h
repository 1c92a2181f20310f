/* What a measuring job does: read from the command line, the same on every rank. */
#ifndef POLYCAST_BENCH_PLAN_H
#define POLYCAST_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "call.h"
#include "recorded.h"

enum { MAX_SIZES = 256, MAX_VARIANTS = 32, MAX_RANK_COUNTS = 64 };

/* When ranks call, against the common start of a repetition. D is the plan's delay. */
enum arrival {
    ARRIVAL_NONE,       /* everybody at 0 */
    ARRIVAL_ROOT_FIRST, /* root at 0, the others at D */
    ARRIVAL_ROOT_LAST,  /* root at D, the others at 0 */
    ARRIVAL_ONE_LATE,   /* one receiver at D, another one each time */
    ARRIVAL_RANDOM,     /* everybody anywhere in [0, D) */
    ARRIVAL_RECORDED,   /* as in the plan's file, whose longest delay is D */
};

/* What a time is. */
enum method {
    METHOD_CLOCK,     /* of one call, on a common clock, by deadlines: see block.h */
    METHOD_LOOP,      /* the mean of calls in a row: see rounds.h */
    METHOD_RESPONDER, /* of one call, by answers to the root: see rounds.h */
};

/* The delay is as long as stock takes, known after the warm-up. */
#define DELAY_LIKE_STOCK (-1)
#define NO_RANK (-1)

struct plan {
    enum collective collective;
    int size_count;
    int sizes[MAX_SIZES]; /* bytes; int because this is what MPI counts with */
    int variant_count;
    const char *variants[MAX_VARIANTS];
    int rank_counts; /* how many communicators are measured one after the other, of the first so many ranks each */
    int ranks[MAX_RANK_COUNTS];
    double seconds_per_variant; /* for each size, after its first repetition */
    bool root_rotates;
    int root;
    enum arrival arrival;
    int64_t delay_ns;
    const char *arrival_file; /* of ARRIVAL_RECORDED */
    struct recorded recorded; /* what it says, when it is open */
    enum method method;
    bool is_cold;            /* caches are emptied before each repetition, outside of its window */
    bool pingpong_clock;     /* measure every clock, also those known to be the same */
    const char *interface;   /* of blast; "": where the route to its group leads */
    int64_t bits_per_second; /* of the slowest link; how long blast waits follows from it */
    int corrupt_rank; /* damages its data before the check, to prove that the check sees it; or NO_RANK */
};

/* Reads `argv`. Returns false with a sentence in `error`. */
bool plan_read(struct plan *plan, int argc, char **argv, int ranks, char *error, int error_size);

/* How long a receiver of blast waits for more before it takes the rest of `bytes` for lost: 20 ms, in which every
 * rank of an oversubscribed machine has its turn, and three times what the bytes need on the wire. */
int64_t plan_silence_ns(const struct plan *plan, int bytes);

/* How long after the common start `rank` calls in repetition `cycle`. */
int64_t plan_arrival_ns(const struct plan *plan, int64_t delay_ns, int64_t cycle, int rank, int root,
                        int ranks);

int64_t plan_common_divisor(int64_t a, int64_t b);

/* Who is the root in repetition `cycle`. */
int plan_root(const struct plan *plan, int64_t cycle, int ranks);

/* Which variant comes first in repetition `cycle`, to be taken modulo their number: the next one each time. Where roots rotate, another one again when
 * the same root would meet the same variant first: what calls find of those before them would look like a difference between variants. */
int64_t plan_turn(const struct plan *plan, int64_t cycle, int ranks);

#endif
