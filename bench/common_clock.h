/* One clock for all ranks: nanoseconds of rank 0's CLOCK_MONOTONIC.
 *
 * Two levels: ranks under one kernel read the same clock, exactly. One leader per other kernel exchanges
 * ping-pongs with rank 0; of several, the fastest one tells the offset, and half its round trip bounds the
 * error, whatever the asymmetry of the way. Drift: times between two synchronisations are interpolated, times
 * after the last one extrapolated with the drift seen since the first. */
#ifndef POLYCAST_BENCH_COMMON_CLOCK_H
#define POLYCAST_BENCH_COMMON_CLOCK_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* At `local_ns` of the own clock, the common clock was `offset_ns` ahead. */
struct clock_estimate {
    int64_t local_ns;
    int64_t offset_ns;
    int64_t error_ns;
};

struct common_clock {
    MPI_Comm control;
    int rank;
    int ranks;
    int *kernel; /* for each rank, the first one under the same kernel */
    int *leader; /* for each rank, the first one whose measurement serves it too */
    int clocks;  /* that are measured */
    struct clock_estimate first;
    struct clock_estimate before;
    struct clock_estimate latest;
    int64_t worst_error_ns; /* of all ranks and all synchronisations; on rank 0 */
};

/* CLOCK_MONOTONIC in nanoseconds. */
int64_t local_now_ns(void);

/* Sleeps until `local_ns`; spins for the last `spin_ns` of it. */
void sleep_until_ns(int64_t local_ns, int64_t spin_ns);

/* Collective over `control`. `pingpong` treats every rank as if it had its own kernel. */
void clock_open(struct common_clock *clock, MPI_Comm control, bool pingpong);
void clock_close(struct common_clock *clock);

/* Compares the clocks once more. Collective. */
void clock_synchronise(struct common_clock *clock);

/* An own time that lies between the last two synchronisations, on the common clock. */
int64_t clock_to_common_ns(const struct common_clock *clock, int64_t local_ns);

/* A coming common time on the own clock. */
int64_t clock_to_local_ns(const struct common_clock *clock, int64_t common_ns);

/* On rank 0: the largest latest offset among the ranks that in truth read rank 0's clock. It is 0 unless
 * ping-pongs measured them all the same: then it says how good the method is. Collective. */
int64_t clock_observed_error_ns(const struct common_clock *clock);

#endif
