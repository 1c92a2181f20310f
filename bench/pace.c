#include "pace.h"

#include <stdbool.h>
#include <string.h>

#include "wake_up.h"

enum { US = 1000, MS = 1000 * US, MAX_SPIN_NS = 1 * MS };

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static bool is_oversubscribed(const struct pace *pace) {
    return pace->ranks_per_core > 1;
}

struct pace pace_new(const struct plan *plan, int bytes, int ranks_per_core, int64_t advance_ns,
                     int64_t spin_ns) {
    struct pace pace = {.plan = plan,
                        .ranks_per_core = ranks_per_core,
                        .advance_ns = advance_ns,
                        .spin_ns = spin_ns,
                        .lead_ns = ranks_per_core > 1 ? 20 * MS : 2 * MS,
                        .margin = 1.3};
    for (int variant = 0; variant < plan->variant_count; variant++) {
        if (!variant_is_reliable(plan->variants[variant]))
            pace.silence_ns[variant] = plan_silence_ns(plan, bytes);
    }
    return pace;
}

void pace_fix_delay(struct pace *pace) {
    pace->delay_ns = pace->plan->delay_ns;
    if (pace->plan->arrival == ARRIVAL_NONE)
        pace->delay_ns = 0;
    else if (pace->delay_ns == DELAY_LIKE_STOCK)
        pace->delay_ns = 1 * MS;
    else
        return;
    for (int variant = 0; variant < pace->plan->variant_count; variant++) {
        if (pace->delay_ns > 0 && strcmp(pace->plan->variants[variant], "stock") == 0)
            pace->delay_ns = pace->estimate_ns[variant];
    }
}

int64_t pace_tolerance_ns(const struct pace *pace, int variant) {
    int64_t estimate_ns = pace->estimate_ns[variant];
    if (!is_oversubscribed(pace))
        return larger(50 * US, estimate_ns / 100);
    if (pace->advance_ns > 0)
        return larger(100 * US, estimate_ns / 20);
    /* Ranks that share a core begin one after the other. */
    return larger(larger(500 * US, 125 * US * pace->ranks_per_core), estimate_ns / 20);
}

int64_t pace_root_tolerance_ns(const struct pace *pace) {
    return larger(1 * MS, pace->advance_ns);
}

static int64_t window_ns(const struct pace *pace, int variant) {
    /* Waking up takes time beside the broadcast; the more ranks share a core, the more. */
    int64_t wake_up_ns = is_oversubscribed(pace) ? pace_root_tolerance_ns(pace) : 100 * US;
    /* A repetition that is lost must not reach into the next one. */
    const int64_t waiting_ns =
        pace->silence_ns[variant] > 0 ? pace->silence_ns[variant] + pace->delay_ns + pace->advance_ns : 0;
    return pace->delay_ns + (int64_t)(pace->margin * (double)pace->estimate_ns[variant]) + wake_up_ns +
           waiting_ns;
}

/* Like the window: the estimate of the slowest rank, with a margin. */
static int64_t handling_ns(const struct pace *pace) {
    return pace->handling_ns + pace->handling_ns / 2 + (is_oversubscribed(pace) ? 500 * US : 50 * US);
}

int64_t pace_cycle_ns(const struct pace *pace) {
    int64_t cycle_ns = 0;
    for (int variant = 0; variant < pace->plan->variant_count; variant++)
        cycle_ns += window_ns(pace, variant) + handling_ns(pace) + pace->advance_ns;
    return cycle_ns;
}

struct block pace_block(const struct pace *pace, int64_t first_cycle, int64_t most_cycles,
                        int64_t length_ns) {
    int64_t cycles = smaller(most_cycles, length_ns / pace_cycle_ns(pace));
    struct block block = {
        .start_ns = local_now_ns() + pace->lead_ns + handling_ns(pace) + pace->advance_ns,
        .delay_ns = pace->delay_ns,
        .advance_ns = pace->advance_ns,
        .spin_ns = pace->spin_ns,
        .handling_ns = handling_ns(pace),
        .first_cycle = first_cycle,
        .cycles = larger(1, smaller(cycles, MAX_REPETITIONS / pace->plan->variant_count)),
    };
    for (int variant = 0; variant < pace->plan->variant_count; variant++)
        block.window_ns[variant] = window_ns(pace, variant);
    return block;
}

void pace_learn(struct pace *pace, const int64_t *completion_ns, int64_t repetitions, int64_t late,
                int64_t first_late_ns) {
    for (int variant = 0; variant < pace->plan->variant_count; variant++) {
        int64_t broadcast_ns = completion_ns[variant] - pace->delay_ns;
        if (completion_ns[variant] > 0)
            pace->estimate_ns[variant] = larger(broadcast_ns, 1 * US);
    }
    /* Late repetitions mean that their predecessors outran the window, or that ranks wake up later than they did. */
    if (late * 5 > repetitions) {
        pace->margin = pace->margin < 8 ? pace->margin * 1.5 : 8;
        pace->advance_ns = smaller(pace->advance_ns * 3 / 2, MAX_ADVANCE_NS);
        /* Processors that have rested, above all virtual ones, may need longer than that to wake up. Who spins for longer than a
         * time slice loses the core where others want it. */
        pace->spin_ns = smaller(pace->spin_ns * 4, MAX_SPIN_NS);
    } else if (late == 0 && pace->margin > 1.2) {
        pace->margin *= 0.95;
    }
    /* So late was no wake-up: the word about the block had not come round in time. */
    if (first_late_ns > pace->lead_ns / 2)
        pace->lead_ns = smaller(pace->lead_ns * 2, 500 * MS);
}
