#include "block.h"

/* Each in its turn, and in each cycle behind another one: some leave traffic behind, which the next one meets. */
int block_variant(const struct bench *bench, const struct block *block, int64_t index) {
    const int variants = bench->plan->variant_count;
    const int64_t cycle = block->first_cycle + index / variants;
    int64_t stride = variants > 2 ? 1 + cycle % (variants - 1) : 1;
    while (plan_common_divisor(stride, variants) > 1)
        stride++;
    return (int)((plan_turn(bench->plan, cycle, bench->ranks) + stride * index) % variants);
}

int64_t block_patience_ns(const struct block *block) {
    /* The root may be as late as its receivers were expected to be. */
    return block->delay_ns + 2 * block->advance_ns;
}

int64_t block_slot_ns(const struct block *block, int variant) {
    return block->window_ns[variant] + block->handling_ns + block->advance_ns;
}

static enum outcome outcome_of(const struct variant *variant, bool complete, bool right) {
    if (complete && right)
        return OUTCOME_RIGHT;
    return variant->is_blast ? OUTCOME_LOST : OUTCOME_WRONG;
}

static struct timing repeat(struct bench *bench, const struct block *block, int64_t cycle, int variant,
                            int64_t deadline_ns, struct call call) {
    const struct plan *plan = bench->plan;
    const int root = call.root = plan_root(plan, cycle, bench->ranks);
    const int64_t repetition = cycle * plan->variant_count + variant;
    const int64_t arrival_ns =
        plan_arrival_ns(plan, block->delay_ns, cycle, bench->rank, root, bench->ranks) -
        (bench->rank == root ? 0 : block->advance_ns);

    payload_prepare(&bench->payload, &call, repetition);
    const int64_t own_deadline_ns = clock_to_local_ns(&bench->clock, deadline_ns + arrival_ns);
    sleep_until_ns(own_deadline_ns, block->spin_ns);

    const int64_t start_ns = local_now_ns();
    const bool complete = variant_run(&bench->variants[variant], &call, &bench->payload,
                                      plan_silence_ns(plan, call.bytes) + block_patience_ns(block));
    const int64_t end_ns = local_now_ns();

    sleep_until_ns(clock_to_local_ns(&bench->clock, deadline_ns + block->window_ns[variant]), block->spin_ns);
    if (bench->rank == plan->corrupt_rank)
        payload_corrupt(&bench->payload, &call);
    const enum outcome outcome =
        outcome_of(&bench->variants[variant], complete, payload_is_right(&bench->payload, &call, repetition));
    if (outcome != OUTCOME_RIGHT)
        variant_settle(&bench->variants[variant]);
    return (struct timing){
        .start_ns = start_ns,
        .end_ns = end_ns,
        .late_ns = start_ns - own_deadline_ns,
        .outcome = outcome,
    };
}

void block_run(struct bench *bench, const struct block *block, const struct call *call,
               struct timing *timings) {
    const int variants = bench->plan->variant_count;
    int64_t deadline_ns = block->start_ns;
    for (int64_t index = 0; index < block->cycles * variants; index++) {
        const int variant = block_variant(bench, block, index);
        const int64_t cycle = block->first_cycle + index / variants;
        timings[index] = repeat(bench, block, cycle, variant, deadline_ns, *call);
        deadline_ns += block_slot_ns(block, variant);
    }
    /* The results are collected only when the last rank is surely through. */
    sleep_until_ns(clock_to_local_ns(&bench->clock, deadline_ns), 0);
}

void block_convert(const struct bench *bench, const struct block *block, struct timing *timings) {
    const int variants = bench->plan->variant_count;
    int64_t deadline_ns = block->start_ns;
    for (int64_t index = 0; index < block->cycles * variants; index++) {
        struct timing *timing = &timings[index];
        timing->start_ns = clock_to_common_ns(&bench->clock, timing->start_ns) - deadline_ns;
        timing->end_ns = clock_to_common_ns(&bench->clock, timing->end_ns) - deadline_ns;
        deadline_ns += block_slot_ns(block, block_variant(bench, block, index));
    }
}
