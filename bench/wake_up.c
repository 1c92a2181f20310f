#include "wake_up.h"

#include <mpi.h>

#include "statistics.h"

enum { ROUNDS = 12, MS = 1000 * 1000 };

/* Rank 0 wakes up so long after the others, to let them in, and the next round begins so long after this one. */
static const int64_t ROOT_WAITS_NS = 30 * MS, ROUND_NS = 60 * MS;

static int64_t measured_spread_ns(const struct common_clock *clock) {
    int64_t start_ns = local_now_ns() + 50 * MS;
    MPI_Bcast(&start_ns, 1, MPI_INT64_T, 0, clock->control);
    int64_t late_ns[ROUNDS], latest_ns[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t common_ns = start_ns + round * ROUND_NS + (clock->rank == 0 ? ROOT_WAITS_NS : 0);
        const int64_t deadline_ns = clock_to_local_ns(clock, common_ns);
        sleep_until_ns(deadline_ns, 0);
        late_ns[round] = clock->rank == 0 ? 0 : local_now_ns() - deadline_ns;
        char byte = 0;
        MPI_Bcast(&byte, 1, MPI_BYTE, 0, clock->control);
    }
    MPI_Reduce(late_ns, latest_ns, ROUNDS, MPI_INT64_T, MPI_MAX, 0, clock->control);
    struct samples samples = {0};
    for (int round = 0; clock->rank == 0 && round < ROUNDS; round++) {
        if (!samples_add(&samples, latest_ns[round]))
            MPI_Abort(clock->control, 1);
    }
    const int64_t spread_ns = samples.count > 0 ? samples_quantile(&samples, 0.9) : 0;
    samples_clear(&samples);
    return spread_ns < LEAST_ADVANCE_NS ? LEAST_ADVANCE_NS
           : spread_ns > MAX_ADVANCE_NS ? MAX_ADVANCE_NS
                                        : spread_ns;
}

int64_t wake_up_spread_ns(const struct common_clock *clock) {
    static struct {
        int ranks;
        int64_t spread_ns;
    } known;
    /* A job that takes plan after plan has them among the same ranks. */
    int is_known = known.ranks == clock->ranks;
    MPI_Bcast(&is_known, 1, MPI_INT, 0, clock->control);
    if (!is_known)
        known.spread_ns = measured_spread_ns(clock);
    known.ranks = clock->ranks;
    return known.spread_ns;
}
