#define _GNU_SOURCE
#include "point.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "pace.h"
#include "rounds.h"
#include "statistics.h"

enum { BLOCK_NS = 500 * 1000 * 1000, WARM_UP_CYCLES = 3 };

/* Of one size; more than polycast makes. */
enum { MAX_TRIAL_CALLS = 64 };

/* The interval that is narrow enough, as a fraction of the median. */
static const double NARROW_ENOUGH = 0.02;

/* Timings travel as plain numbers. */
enum { NUMBERS_PER_TIMING = 4 };
_Static_assert(sizeof(struct timing) == NUMBERS_PER_TIMING * sizeof(int64_t), "a timing is so many numbers");

/* One size while it is measured. */
struct point {
    struct bench *bench;
    struct call call;
    struct pace pace;
    struct timing *own;                       /* this rank's part in the block */
    struct timing *all;                       /* rank 0: everybody's, rank after rank */
    struct samples completions[MAX_VARIANTS]; /* rank 0: of all blocks that count */
    int64_t budget_ns;
    int64_t began_ns;
    int64_t next_cycle;
    int64_t first_late_ns;              /* rank 0: how late somebody entered the block's first repetition */
    int blocks;                         /* that count */
    int64_t tolerance_ns[MAX_VARIANTS]; /* rank 0: the largest that was applied, which follows the estimate */
};

/* The time that this rank had a core: unlike the time that passed, it does not depend on what the others did.
 */
static int64_t thread_cpu_ns(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000000 + used.tv_nsec;
}

/* The first repetition of each variant, ordered by barriers because nobody knows yet how long it takes. It
 * opens connections and touches memory; its times are estimates, not results. */
static void first_cycle(struct point *point) {
    struct bench *bench = point->bench;
    struct call *call = &point->call;
    call->root = plan_root(bench->plan, 0, bench->ranks);
    int64_t handling_ns = 0;
    for (int variant = 0; variant < bench->plan->variant_count; variant++) {
        int64_t work_ns = thread_cpu_ns();
        payload_prepare(&bench->payload, call, variant);
        work_ns = thread_cpu_ns() - work_ns;
        MPI_Barrier(bench->control);
        int64_t call_ns = local_now_ns();
        const bool complete = variant_run(&bench->variants[variant], call, &bench->payload,
                                          plan_silence_ns(bench->plan, call->bytes));
        call_ns = local_now_ns() - call_ns;
        work_ns -= thread_cpu_ns();
        (void)payload_is_right(&bench->payload, call, variant);
        work_ns += thread_cpu_ns();
        int64_t own_ns[2] = {call_ns, work_ns * bench->ranks_per_core}, slowest_ns[2] = {0};
        MPI_Allreduce(own_ns, slowest_ns, 2, MPI_INT64_T, MPI_MAX, bench->control);
        if (!complete)
            variant_settle(&bench->variants[variant]);
        point->pace.estimate_ns[variant] = slowest_ns[0];
        handling_ns = slowest_ns[1] > handling_ns ? slowest_ns[1] : handling_ns;
    }
    point->pace.handling_ns = handling_ns;
    point->next_cycle = 1;
}

/* What is known of a repetition. */
struct judgement {
    /* From the root's call where receivers have an advance, else from the first one; to the last return, or the root's where only it
     * ends with data. */
    int64_t completion_ns;
    bool late;
    bool lost;
};

/* How many ranks left a barrier before the last one had entered it, as far as the clocks can tell. */
static int64_t ranks_ahead(const struct point *point, int64_t repetitions, int64_t index,
                           int64_t last_start_ns) {
    int64_t ahead = 0;
    for (int rank = 0; rank < point->bench->ranks; rank++) {
        const int64_t end_ns = point->all[rank * repetitions + index].end_ns;
        ahead += end_ns + 2 * point->bench->clock.worst_error_ns < last_start_ns;
    }
    return ahead;
}

/* Judges the `index`-th repetition of the block from all ranks' timings. Writes it down when it counts. */
static struct judgement judge(struct point *point, const struct block *block, int64_t index, bool counts) {
    const struct bench *bench = point->bench;
    const int variants = bench->plan->variant_count;
    const int variant = block_variant(bench, block, index);
    const int64_t cycle = block->first_cycle + index / variants;
    const int64_t repetitions = block->cycles * variants;
    const int root = plan_root(bench->plan, cycle, bench->ranks);
    int64_t first_start_ns = INT64_MAX, last_start_ns = INT64_MIN, last_end_ns = INT64_MIN, latest_ns = 0;
    int64_t wrong = 0, lost = 0;
    for (int rank = 0; rank < bench->ranks; rank++) {
        const struct timing *timing = &point->all[rank * repetitions + index];
        first_start_ns = timing->start_ns < first_start_ns ? timing->start_ns : first_start_ns;
        last_start_ns = timing->start_ns > last_start_ns ? timing->start_ns : last_start_ns;
        last_end_ns = timing->end_ns > last_end_ns ? timing->end_ns : last_end_ns;
        latest_ns = timing->late_ns > latest_ns ? timing->late_ns : latest_ns;
        wrong += timing->outcome == OUTCOME_WRONG;
        lost += timing->outcome == OUTCOME_LOST;
    }
    if (index == 0)
        point->first_late_ns = latest_ns;
    if (bench->plan->collective == BARRIER)
        wrong = ranks_ahead(point, repetitions, index, last_start_ns);
    const struct timing *at_root = &point->all[root * repetitions + index];
    const bool from_root = block->advance_ns > 0;
    const int64_t tolerance_ns = pace_tolerance_ns(&point->pace, variant);
    const bool late = from_root ? last_start_ns - at_root->start_ns > tolerance_ns ||
                                      at_root->late_ns > pace_root_tolerance_ns(&point->pace)
                                : latest_ns > tolerance_ns;
    /* A rank without data is what a late repetition of blast may end with; it has no time all the same. */
    const char *verdict = lost > 0 ? "lost" : late ? "late" : "ok";
    if (counts) {
        if (tolerance_ns > point->tolerance_ns[variant])
            point->tolerance_ns[variant] = tolerance_ns;
        printf("repetition %lld %d %d %s %lld", (long long)cycle, variant, root, verdict, (long long)wrong);
        for (int rank = 0; rank < bench->ranks; rank++) {
            const struct timing *timing = &point->all[rank * repetitions + index];
            printf(" %lld %lld", (long long)timing->start_ns, (long long)timing->end_ns);
        }
        putchar('\n');
    }
    if (collective_ends_at_root(bench->plan->collective))
        last_end_ns = at_root->end_ns;
    return (struct judgement){
        .completion_ns = last_end_ns - (from_root ? at_root->start_ns : first_start_ns),
        .late = late,
        .lost = lost > 0,
    };
}

/* Rank 0 takes in the results of a block. */
static void take_in(struct point *point, const struct block *block, bool counts) {
    const int variants = point->bench->plan->variant_count;
    struct samples block_completions[MAX_VARIANTS] = {0};
    int64_t usual_ns[MAX_VARIANTS] = {0}, late = 0;
    for (int64_t index = 0; index < block->cycles * variants; index++) {
        const int variant = block_variant(point->bench, block, index);
        const struct judgement judgement = judge(point, block, index, counts);
        late += judgement.late;
        if (judgement.lost)
            continue;
        /* How long windows must be is learnt from late repetitions, too: there may be no others. */
        bool kept = samples_add(&block_completions[variant], judgement.completion_ns);
        if (counts && !judgement.late)
            kept = kept && samples_add(&point->completions[variant], judgement.completion_ns);
        if (!kept)
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int variant = 0; variant < variants; variant++) {
        if (block_completions[variant].count > 0)
            usual_ns[variant] = samples_quantile(&block_completions[variant], 0.9);
        samples_clear(&block_completions[variant]);
    }
    printf("block %lld %lld\n", (long long)block->cycles * variants,
           (long long)point->bench->clock.worst_error_ns);
    fflush(stdout);
    pace_learn(&point->pace, usual_ns, block->cycles * variants, late, point->first_late_ns);
}

/* Everybody runs the block that rank 0 decided on. Returns false when it was none. */
static bool run_block(struct point *point, struct block block, bool counts) {
    struct bench *bench = point->bench;
    MPI_Bcast(&block, sizeof block, MPI_BYTE, 0, bench->control);
    if (block.cycles == 0)
        return false;
    block_run(bench, &block, &point->call, point->own);
    clock_synchronise(&bench->clock);
    block_convert(bench, &block, point->own);
    const int numbers = (int)(block.cycles * bench->plan->variant_count * NUMBERS_PER_TIMING);
    MPI_Gather(point->own, numbers, MPI_INT64_T, point->all, numbers, MPI_INT64_T, 0, bench->control);
    point->next_cycle = block.first_cycle + block.cycles;
    if (bench->rank == 0)
        take_in(point, &block, counts);
    return true;
}

/* Rank 0: what comes next, a block without cycles at the end. */
static struct block next_block(struct point *point) {
    bool enough = true;
    for (int variant = 0; variant < point->bench->plan->variant_count; variant++)
        enough = enough && samples_are_enough(&point->completions[variant], NARROW_ENOUGH);
    const int64_t used_ns = local_now_ns() - point->began_ns;
    const bool out_of_time = used_ns + pace_cycle_ns(&point->pace) > point->budget_ns;
    if (enough || (point->blocks > 0 && out_of_time))
        return (struct block){.cycles = 0};
    point->blocks++;
    const int64_t left_ns = point->budget_ns - used_ns;
    return pace_block(&point->pace, point->next_cycle, MAX_REPETITIONS,
                      left_ns < BLOCK_NS ? left_ns : BLOCK_NS);
}

/* Rank 0: a block that does not count; without cycles where every cycle is needed for results. */
static struct block warm_up_block(struct point *point) {
    const struct bench *bench = point->bench;
    const int64_t used_ns = local_now_ns() - point->began_ns;
    if (used_ns + 8 * pace_cycle_ns(&point->pace) > point->budget_ns)
        return (struct block){.cycles = 0};
    /* Every root opens connections of its own. */
    const int cycles =
        bench->plan->root_rotates && bench->ranks > WARM_UP_CYCLES ? bench->ranks : WARM_UP_CYCLES;
    return pace_block(&point->pace, point->next_cycle, cycles, point->budget_ns / 4);
}

/* Where polycast compares ways by itself, what is measured is what it has found. */
static void end_trials(struct point *point) {
    struct bench *bench = point->bench;
    for (int index = 0; index < bench->plan->variant_count; index++) {
        struct variant *variant = &bench->variants[index];
        for (int call = 0; call < MAX_TRIAL_CALLS && variant_is_compared(variant, &point->call); call++) {
            MPI_Barrier(bench->control);
            point->call.root = plan_root(bench->plan, call, bench->ranks);
            variant_run(variant, &point->call, &bench->payload, 0);
        }
    }
}

static void measure(struct point *point) {
    const bool decides = point->bench->rank == 0;
    const struct block none = {.cycles = 0};
    first_cycle(point);
    end_trials(point);
    point->began_ns = local_now_ns();
    pace_fix_delay(&point->pace);
    run_block(point, decides ? warm_up_block(point) : none, false);
    pace_fix_delay(&point->pace);
    while (run_block(point, decides ? next_block(point) : none, true))
        ;
}

/* How many calls a round has: as many as take this long, within bounds. */
enum { ROUND_NS = 200 * 1000 * 1000, MIN_LOOP_CALLS = 10, MAX_ROUND_CALLS = 1000 };

static int calls_of_round(const struct point *point, int variant) {
    const struct bench *bench = point->bench;
    const bool is_loop = bench->plan->method == METHOD_LOOP;
    const int least = is_loop ? MIN_LOOP_CALLS : 1;
    /* With the dummy computation a call takes three times as long, and there is a row of them for each responder. */
    const int64_t each_ns = (1 + point->pace.estimate_ns[variant]) * (is_loop ? 1 : 3 * bench->ranks);
    const int64_t calls = ROUND_NS / each_ns;
    return calls < least ? least : calls > MAX_ROUND_CALLS ? MAX_ROUND_CALLS : (int)calls;
}

/* A round of each variant. Rank 0 writes them down. */
static void run_rounds(struct point *point) {
    struct bench *bench = point->bench;
    const struct plan *plan = bench->plan;
    const int variants = plan->variant_count;
    int64_t *times_ns = malloc((size_t)bench->ranks * sizeof *times_ns);
    if (!times_ns)
        MPI_Abort(MPI_COMM_WORLD, 1);
    const int root = point->call.root = plan_root(plan, point->next_cycle, bench->ranks);
    for (int index = 0; index < variants; index++) {
        const int variant = (int)((plan_turn(plan, point->next_cycle, bench->ranks) + index) % variants);
        int64_t of_variant[2] = {calls_of_round(point, variant), point->pace.estimate_ns[variant]};
        MPI_Bcast(of_variant, 2, MPI_INT64_T, 0, bench->control);
        const int wrong = rounds_run(bench, &point->call, variant, point->next_cycle * variants + variant,
                                     (int)of_variant[0], of_variant[1], times_ns);
        if (bench->rank != 0)
            continue;
        int64_t longest_ns = 0;
        printf("repetition %lld %d %d ok %d", (long long)point->next_cycle, variant, root, wrong);
        for (int rank = 0; rank < bench->ranks; rank++) {
            printf(" 0 %lld", (long long)times_ns[rank]);
            longest_ns = times_ns[rank] > longest_ns ? times_ns[rank] : longest_ns;
        }
        putchar('\n');
        /* The first call opened connections: what later ones take is known now. */
        point->pace.estimate_ns[variant] = longest_ns > 0 ? longest_ns : 1;
        if (!samples_add(&point->completions[variant],
                         collective_ends_at_root(plan->collective) ? times_ns[root] : longest_ns))
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (bench->rank == 0) {
        printf("block %d 0\n", variants);
        fflush(stdout);
    }
    point->next_cycle++;
    free(times_ns);
}

/* Rank 0: whether another round is to come. */
static bool is_round_missing(struct point *point) {
    enum { LEAST_ROUNDS = 6 };
    bool enough = true;
    for (int variant = 0; variant < point->bench->plan->variant_count; variant++) {
        struct samples *samples = &point->completions[variant];
        enough = enough && samples->count >= LEAST_ROUNDS && samples_are_enough(samples, NARROW_ENOUGH);
    }
    return !enough && (point->next_cycle == 1 || local_now_ns() - point->began_ns < point->budget_ns);
}

static void measure_by_rounds(struct point *point) {
    first_cycle(point);
    end_trials(point);
    point->began_ns = local_now_ns();
    for (;;) {
        int is_missing = point->bench->rank == 0 && is_round_missing(point);
        MPI_Bcast(&is_missing, 1, MPI_INT, 0, point->bench->control);
        if (!is_missing)
            return;
        run_rounds(point);
    }
}

/* What served the calls of this size, where polycast is there to tell. */
static void write_choices(const struct bench *bench, const struct call *call) {
    for (int variant = 0; variant < bench->plan->variant_count; variant++) {
        char name[256];
        if (variant_choice(&bench->variants[variant], call, name, sizeof name))
            printf("choice %d %s\n", variant, name);
    }
}

void point_measure(struct bench *bench, int bytes) {
    const struct plan *plan = bench->plan;
    struct point point = {
        .bench = bench,
        .pace = pace_new(plan, bytes, bench->ranks_per_core, bench->advance_ns, bench->spin_ns),
        .own = malloc(MAX_REPETITIONS * sizeof(struct timing)),
        .all =
            bench->rank == 0 ? malloc((size_t)bench->ranks * MAX_REPETITIONS * sizeof(struct timing)) : NULL,
        .budget_ns = (int64_t)(plan->seconds_per_variant * 1e9) * plan->variant_count,
    };
    const bool is_open = call_open(&point.call, plan->collective, bytes, bench->rank, bench->ranks);
    if (!is_open || !point.own || (bench->rank == 0 && !point.all))
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (bench->rank == 0) {
        printf("point %d\n", bytes);
        fflush(stdout);
    }
    if (plan->method == METHOD_CLOCK)
        measure(&point);
    else
        measure_by_rounds(&point);
    if (bench->rank == 0) {
        bench->advance_ns = point.pace.advance_ns;
        bench->spin_ns = point.pace.spin_ns;
        write_choices(bench, &point.call);
        printf("point-end %d %lld %lld", bytes, (long long)point.pace.delay_ns, (long long)bench->advance_ns);
        for (int variant = 0; variant < plan->variant_count; variant++)
            printf(" %lld", (long long)point.tolerance_ns[variant]);
        putchar('\n');
        fflush(stdout);
    }
    for (int variant = 0; variant < plan->variant_count; variant++)
        samples_clear(&point.completions[variant]);
    call_close(&point.call);
    free(point.own);
    free(point.all);
}
