/* A block of repetitions at deadlines that all ranks know before it begins.
 *
 *        slot of variant A         slot of variant B         A …
 *     |------------------------|-----------------------|------
 *     deadline    window end     deadline
 *     | the call … asleep      |
 *                  | check, fill, asleep
 *
 * Invariants, which make the times believable:
 *  1. Nothing is communicated between the repetitions of a block: no barrier lends its pattern to the result.
 *  2. Inside the window of a repetition a rank is in the call or asleep, or spins on a core of its own: nobody takes a
 *     core, or a link, from those who still work. Checking and filling wait for the end of the window.
 *  3. A repetition that a rank entered too late is marked and counted, never corrected.
 *  4. Where ranks share cores, and all wait for the root's data, receivers call `advance` before the deadline and wait in the
 *     call for the root, which calls at the deadline; the time runs from the root's call then. */
#ifndef POLYCAST_BENCH_BLOCK_H
#define POLYCAST_BENCH_BLOCK_H

#include <mpi.h>

#include "common_clock.h"
#include "payload.h"
#include "plan.h"
#include "variant.h"

enum { MAX_REPETITIONS = 256 };

/* What every rank needs to know in order to be on time; rank 0 decides it. */
struct block {
    int64_t start_ns;   /* first deadline, on the common clock */
    int64_t delay_ns;   /* D of the arrival pattern */
    int64_t advance_ns; /* of receivers */
    int64_t spin_ns;    /* before deadlines and ends of windows */
    int64_t handling_ns;
    int64_t first_cycle; /* counts within a size */
    int64_t cycles;      /* each is one repetition of every variant; 0: this size is done */
    int64_t window_ns[MAX_VARIANTS];
};

/* What a rank had at the end of a repetition. */
enum outcome {
    OUTCOME_RIGHT,
    OUTCOME_WRONG, /* not what was sent */
    OUTCOME_LOST,  /* the same of a variant that promises nothing */
};

/* One rank's part in one repetition, relative to the deadline. */
struct timing {
    int64_t start_ns;
    int64_t end_ns;
    int64_t late_ns; /* behind the own deadline, arrival pattern and advance included */
    int64_t outcome; /* enum outcome */
};

/* What stays the same over all blocks. */
struct bench {
    const struct plan *plan;
    struct variant stock; /* what is only about measuring stays on it */
    MPI_Comm control;     /* its communicator */
    struct variant variants[MAX_VARIANTS];
    struct common_clock clock;
    struct payload payload;
    int ranks_per_core; /* where it is worst, rounded up; above 1: oversubscribed */
    int64_t
        advance_ns; /* rank 0: of receivers, as it was measured and grew; 0: times run from the first call */
    int64_t
        spin_ns; /* rank 0: before deadlines, as it grew where ranks woke up too late; 0 when oversubscribed */
    int rank;
    int ranks;
};

/* Which variant the `index`-th repetition of the block is. Every cycle begins with the next variant, A B C, B
 * C A, C A B, so that none gains or loses by its place. */
int block_variant(const struct bench *bench, const struct block *block, int64_t index);

/* From one deadline, that of `variant`, to the next. */
int64_t block_slot_ns(const struct block *block, int variant);

/* How long after a receiver's call the root's may come. */
int64_t block_patience_ns(const struct block *block);

/* Runs the block. `timings` has room for cycles × variants; in the order of the repetitions. Local, apart
 * from the calls themselves. `call` is as it is but for its root. */
void block_run(struct bench *bench, const struct block *block, const struct call *call,
               struct timing *timings);

/* Brings this rank's times onto the common clock, once the clocks were compared after the block. */
void block_convert(const struct bench *bench, const struct block *block, struct timing *timings);

#endif
