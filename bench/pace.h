/* How long things take, and the blocks that follow from it. Lives on rank 0. */
#ifndef POLYCAST_BENCH_PACE_H
#define POLYCAST_BENCH_PACE_H

#include "block.h"

struct pace {
    const struct plan *plan;
    int ranks_per_core;
    int64_t estimate_ns[MAX_VARIANTS]; /* of a completion, by variant */
    int64_t silence_ns[MAX_VARIANTS];  /* what a lost repetition takes beyond that; 0 where none is lost */
    int64_t delay_ns;                  /* D of the arrival pattern */
    int64_t advance_ns;                /* of receivers; 0: nobody is to wait for the root */
    int64_t spin_ns;                   /* before deadlines; 0: nobody spins, for ranks share cores */
    int64_t handling_ns;               /* to check and to fill, slowest rank */
    int64_t lead_ns;                   /* from deciding on a block to its first deadline */
    double margin;                     /* window over estimate */
};

/* A pace for messages of `bytes` where so many ranks share a core. */
struct pace pace_new(const struct plan *plan, int bytes, int ranks_per_core, int64_t advance_ns,
                     int64_t spin_ns);

/* Sets D of the arrival pattern: as planned, or what stock takes by the present estimate. Not changed while
 * repetitions count, so that all of them met the same arrivals. */
void pace_fix_delay(struct pace *pace);

/* How late a rank may enter a repetition of `variant` that still counts: behind its deadline, or where receivers have
 * an advance, behind the root's call. */
int64_t pace_tolerance_ns(const struct pace *pace, int variant);

/* How far behind its deadline the root may call where receivers have an advance: the window has room for it. */
int64_t pace_root_tolerance_ns(const struct pace *pace);

/* One repetition of each variant. */
int64_t pace_cycle_ns(const struct pace *pace);

/* A block of at most `most_cycles` and about `length_ns`, at least one cycle, that begins `lead_ns` from now.
 */
struct block pace_block(const struct pace *pace, int64_t first_cycle, int64_t most_cycles, int64_t length_ns);

/* Learns from a block: per variant what 90 % of the completions stayed below (0: not known), how many of its
 * repetitions were late, and by how much somebody was behind the first deadline. */
void pace_learn(struct pace *pace, const int64_t *completion_ns, int64_t repetitions, int64_t late,
                int64_t first_late_ns);

#endif
