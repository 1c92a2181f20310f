#include "rounds.h"

#include "statistics.h"

enum { ANSWER_TAG = 77, PINGPONGS = 9, MAX_CRITICAL = 3, FIRST_CALLS = 3, CRITICAL_CALLS = 7 };

static void call_once(struct bench *bench, const struct call *call, int variant) {
    variant_run(&bench->variants[variant], call, &bench->payload, plan_silence_ns(bench->plan, call->bytes));
}

/* The root is the last to come out of a reduction: all others wait for its first call. */
static void let_root_be_last(struct bench *bench, int root) {
    int one = 1, sum;
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, root, bench->control);
}

/* Algorithm 3.3.1: this rank's mean. */
static int64_t loop(struct bench *bench, const struct call *call, int variant, int calls) {
    MPI_Barrier(bench->control);
    const int64_t began_ns = local_now_ns();
    for (int i = 0; i < calls; i++)
        call_once(bench, call, variant);
    return (local_now_ns() - began_ns) / calls;
}

/* An answer says how long its sender computed before, for sleeping takes longer than it was asked for. */
static void answer(struct bench *bench, int to, int64_t computed_ns) {
    MPI_Send(&computed_ns, 1, MPI_INT64_T, to, ANSWER_TAG, bench->control);
}

static int64_t wait_for_answer(struct bench *bench, int from) {
    int64_t computed_ns;
    MPI_Recv(&computed_ns, 1, MPI_INT64_T, from, ANSWER_TAG, bench->control, MPI_STATUS_IGNORE);
    return computed_ns;
}

static void keep(struct samples *samples, int64_t value_ns) {
    if (!samples_add(samples, value_ns))
        MPI_Abort(MPI_COMM_WORLD, 1);
}

/* At the root: how long an answer is on its way, half of a round trip. */
static int64_t answer_ns(struct bench *bench, int root, int responder) {
    struct samples trips = {0};
    int64_t half_ns = 0;
    for (int i = 0; i < PINGPONGS; i++) {
        const int64_t began_ns = local_now_ns();
        if (bench->rank == root) {
            answer(bench, responder, 0);
            wait_for_answer(bench, responder);
            keep(&trips, local_now_ns() - began_ns);
        } else if (bench->rank == responder) {
            answer(bench, root, wait_for_answer(bench, root));
        }
    }
    if (bench->rank == root)
        half_ns = samples_quantile(&trips, 0.5) / 2;
    samples_clear(&trips);
    return half_ns;
}

/* Algorithm 3.3.2 for one responder: at the root, the median of the times until it had the data. `dummy_ns`: how long it computes before
 * it answers. */
static int64_t respond(struct bench *bench, const struct call *call, int variant, int responder, int calls,
                       int64_t dummy_ns) {
    const int root = call->root;
    const int64_t way_ns = answer_ns(bench, root, responder);
    struct samples times = {0};
    let_root_be_last(bench, root);
    for (int i = 0; i < calls; i++) {
        const int64_t began_ns = local_now_ns();
        call_once(bench, call, variant);
        if (bench->rank == root) {
            const int64_t computed_ns = wait_for_answer(bench, responder);
            keep(&times, local_now_ns() - began_ns - computed_ns - way_ns);
        } else if (bench->rank == responder) {
            const int64_t computes_from_ns = local_now_ns();
            if (dummy_ns > 0)
                sleep_until_ns(computes_from_ns + dummy_ns, 0);
            answer(bench, root, local_now_ns() - computes_from_ns);
        }
    }
    const int64_t median_ns = bench->rank == root ? samples_quantile(&times, 0.5) : 0;
    samples_clear(&times);
    return median_ns > 0 ? median_ns : 0;
}

/* The ranks with the longest times, the longest first. */
struct critical {
    int count;
    int ranks[MAX_CRITICAL];
};

static struct critical critical_of(const int64_t *times_ns, int ranks, int root) {
    struct critical critical = {0};
    for (int rank = 0; rank < ranks; rank++) {
        int at = critical.count;
        if (rank == root)
            continue;
        while (at > 0 && times_ns[critical.ranks[at - 1]] < times_ns[rank])
            at--;
        critical.count += critical.count < MAX_CRITICAL;
        for (int i = critical.count - 1; i > at; i--)
            critical.ranks[i] = critical.ranks[i - 1];
        if (at < MAX_CRITICAL)
            critical.ranks[at] = rank;
    }
    return critical;
}

/* Both passes. The root's `times_ns` get everybody's time. */
static void respond_all(struct bench *bench, const struct call *call, int variant, int calls,
                        int64_t estimate_ns, int64_t *times_ns) {
    struct critical critical = {0};
    int64_t longest_ns = 0;
    for (int responder = 0; responder < bench->ranks; responder++) {
        times_ns[responder] = 0;
        if (responder != call->root)
            times_ns[responder] = respond(bench, call, variant, responder,
                                          calls > FIRST_CALLS ? calls : FIRST_CALLS, 2 * estimate_ns);
    }
    if (bench->rank == call->root)
        critical = critical_of(times_ns, bench->ranks, call->root);
    MPI_Bcast(&critical, sizeof critical, MPI_BYTE, call->root, bench->control);
    for (int i = 0; i < critical.count; i++) {
        const int responder = critical.ranks[i];
        const int64_t time_ns =
            respond(bench, call, variant, responder, calls > CRITICAL_CALLS ? calls : CRITICAL_CALLS, 0);
        times_ns[responder] = time_ns;
        longest_ns = time_ns > longest_ns ? time_ns : longest_ns;
    }
    for (int rank = 0; rank < bench->ranks; rank++)
        times_ns[rank] = times_ns[rank] < longest_ns ? times_ns[rank] : longest_ns;
}

int rounds_run(struct bench *bench, struct call *call, int variant, int64_t repetition, int calls,
               int64_t estimate_ns, int64_t *times_ns) {
    const struct plan *plan = bench->plan;
    payload_prepare(&bench->payload, call, repetition);
    if (plan->method == METHOD_LOOP) {
        const int64_t own_ns = loop(bench, call, variant, calls);
        MPI_Gather(&own_ns, 1, MPI_INT64_T, times_ns, 1, MPI_INT64_T, 0, bench->control);
    } else {
        respond_all(bench, call, variant, calls, estimate_ns, times_ns);
        /* Rank 0 writes them down. */
        if (call->root != 0 && bench->rank == call->root)
            MPI_Send(times_ns, bench->ranks, MPI_INT64_T, 0, ANSWER_TAG, bench->control);
        if (call->root != 0 && bench->rank == 0)
            MPI_Recv(times_ns, bench->ranks, MPI_INT64_T, call->root, ANSWER_TAG, bench->control,
                     MPI_STATUS_IGNORE);
    }
    if (bench->rank == plan->corrupt_rank)
        payload_corrupt(&bench->payload, call);
    int wrong = !payload_is_right(&bench->payload, call, repetition), all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, bench->control);
    return all;
}
