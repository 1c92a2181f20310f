/* Measures a collective as a program calls it. `polycast bench` starts this under an mpiexec and reads what it
 * writes. With the argument `plans` it reads one plan after the other from its standard input, see plan_server.h; with `orders` it measures
 * between pairs of ranks instead, see rank_server.h; with `cost BYTES CALLS` the processor time of broadcasts, see cost.h.
 *
 * An ordinary MPI program: it knows nothing of polycast but the one optional function that sets what serves
 * the calls on a communicator. On stdout, rank 0 writes lines, flushed after every block, so that an
 * interrupted job leaves what it had measured. Times in ns, relative to the common start of their repetition:
 *
 *     polycast-bench 3                      the version of this format
 *     mpi LIBRARY VERSION
 *     ranks N                               only where several communicators are measured: now that of the first N ranks, and all that
 *                                           follows is about it, from `rank` on
 *     rank R host NAME kernel K cores C     one per rank; K: the first rank under the same kernel
 *     clock METHOD CLOCKS ERROR OBSERVED    METHOD: shared, two-level or pingpong; see common_clock.h
 *     wake-up SPREAD                        where ranks share cores, all are to call at once and wait for the root: how far apart they
 *                                           wake up. Receivers call so much before the root, and the time runs from the
 *                                           root's call; without this line it runs from the first call
 *     oversubscribed 0|1
 *     point BYTES
 *     repetition CYCLE VARIANT ROOT ok|late|lost WRONG START END START END …
 *                                           late: a rank entered too late (its times are written all the same); lost: a variant that promises
 *                                           nothing left a rank without data; WRONG: ranks with wrong data;
 *                                           START END: by rank
 *                                           With the methods loop and responder START is 0, and END the time of a call, a mean
 *                                           over calls in a row (rounds.h)
 *     block REPETITIONS CLOCK-ERROR
 *     choice VARIANT NAME                   what polycast served this size by, as POLYCAST_BCAST takes it
 *     point-end BYTES DELAY ADVANCE TOLERANCE…
 *                                           one tolerance per variant
 *     error SENTENCE
 *     end
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "block.h"
#include "cost.h"
#include "nap.h"
#include "place.h"
#include "plan_server.h"
#include "point.h"
#include "rank_server.h"
#include "rounds.h"
#include "variant.h"
#include "wake_up.h"

/* On rank 0. */
static void write_head(const char *format) {
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    puts(format);
    MPI_Get_library_version(version, &length);
    version[strcspn(version, "\r\n")] = '\0';
    printf("mpi %s\n", version);
}

/* On rank 0. */
static void write_end(bool able, const char *error) {
    if (able)
        puts("end");
    else
        printf("error %s\n", error);
    fflush(stdout);
}

static void write_clock(const struct common_clock *clock, bool pingpong) {
    int64_t observed_ns = clock_observed_error_ns(clock);
    if (clock->rank != 0)
        return;
    const char *method = pingpong ? "pingpong" : clock->clocks == 1 ? "shared" : "two-level";
    printf("clock %s %d %lld %lld\n", method, clock->clocks, (long long)clock->worst_error_ns,
           (long long)observed_ns);
}

static bool open_bench(struct bench *bench, const struct plan *plan, MPI_Comm ranks, char *error,
                       int error_size) {
    bench->plan = plan;
    MPI_Comm_rank(ranks, &bench->rank);
    MPI_Comm_size(ranks, &bench->ranks);
    if (!variant_open(&bench->stock, "stock", plan, ranks, error, error_size))
        return false;
    bench->control = bench->stock.communicator;
    for (int i = 0; i < plan->variant_count; i++) {
        if (!variant_open(&bench->variants[i], plan->variants[i], plan, bench->control, error, error_size))
            return false;
    }
    size_t largest = 0;
    for (int i = 0; i < plan->size_count; i++) {
        const struct call call = {
            .collective = plan->collective, .bytes = plan->sizes[i], .ranks = bench->ranks};
        largest = call_room(&call) > largest ? call_room(&call) : largest;
    }
    int room = payload_open(&bench->payload, largest, bench->plan->is_cold), room_everywhere = 0;
    MPI_Allreduce(&room, &room_everywhere, 1, MPI_INT, MPI_MIN, bench->control);
    if (!room_everywhere)
        snprintf(error, (size_t)error_size, "no memory for three buffers of %zu bytes on every rank",
                 largest);
    return room_everywhere;
}

static void close_bench(struct bench *bench) {
    payload_close(&bench->payload);
    clock_close(&bench->clock);
    for (int i = 0; i < bench->plan->variant_count; i++)
        variant_close(&bench->variants[i]);
    variant_close(&bench->stock);
}

static void measure(struct bench *bench) {
    const struct plan *plan = bench->plan;
    clock_open(&bench->clock, bench->control, plan->pingpong_clock);
    bench->ranks_per_core = place_write(bench->control, bench->clock.kernel);
    const bool oversubscribed = bench->ranks_per_core > 1;
    bench->spin_ns = oversubscribed ? 0 : 200 * 1000;
    write_clock(&bench->clock, plan->pingpong_clock);
    /* An arrival pattern says itself who is to be late; and who comes early must not begin without the root. */
    if (oversubscribed && plan->method == METHOD_CLOCK && plan->arrival == ARRIVAL_NONE &&
        collective_has_source(plan->collective)) {
        bench->advance_ns = wake_up_spread_ns(&bench->clock);
        if (bench->rank == 0)
            printf("wake-up %lld\n", (long long)bench->advance_ns);
    }
    if (bench->rank == 0)
        printf("oversubscribed %d\n", oversubscribed);
    for (int i = 0; i < plan->size_count; i++)
        point_measure(bench, plan->sizes[i]);
}

/* Returns whether it could be measured among these ranks. */
static bool measure_among(MPI_Comm ranks, const struct plan *plan, char *error, int error_size) {
    struct bench bench = {0};
    const bool able = open_bench(&bench, plan, ranks, error, error_size);
    if (able) {
        measure(&bench);
        close_bench(&bench);
    }
    return able;
}

/* The same among the first `count` ranks of `world`, while the others sleep. Rank 0 is always among them. */
static bool measure_among_first(int count, MPI_Comm world, const struct plan *plan, char *error,
                                int error_size) {
    enum { LOOK_NS = 2 * 1000 * 1000 };
    int rank, able = 1, all_able = 0;
    MPI_Comm ranks;
    MPI_Request request;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_split(world, rank < count ? 0 : MPI_UNDEFINED, rank, &ranks);
    if (rank == 0)
        printf("ranks %d\n", count);
    if (ranks != MPI_COMM_NULL) {
        able = measure_among(ranks, plan, error, error_size);
        MPI_Comm_free(&ranks);
    }
    MPI_Iallreduce(&able, &all_able, 1, MPI_INT, MPI_MIN, world, &request);
    nap_until_complete(&request, MPI_STATUS_IGNORE, LOOK_NS);
    return all_able;
}

/* Returns whether the calls could be measured. */
static bool measure_calls(int argc, char **argv) {
    struct plan plan;
    char error[512] = "";
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (rank == 0)
        write_head("polycast-bench 3");
    bool able = plan_read(&plan, argc, argv, ranks, error, sizeof error);
    if (able && plan.method == METHOD_RESPONDER && !collective_has_source(plan.collective)) {
        snprintf(error, sizeof error, "method=responder: expected bcast or scatter, whose root has the data");
        able = false;
    }
    if (able && plan.arrival == ARRIVAL_RECORDED) {
        able = recorded_open(&plan.recorded, plan.arrival_file, MPI_COMM_WORLD, error, sizeof error);
        plan.delay_ns = able ? recorded_longest_ns(&plan.recorded) : 0;
    }
    if (able && plan.rank_counts == 1 && plan.ranks[0] == ranks)
        able = measure_among(MPI_COMM_WORLD, &plan, error, sizeof error);
    else
        for (int i = 0; able && i < plan.rank_counts; i++)
            able = measure_among_first(plan.ranks[i], MPI_COMM_WORLD, &plan, error, sizeof error);
    if (rank == 0)
        write_end(able, error);
    recorded_close(&plan.recorded);
    return able;
}

static bool serve_orders(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        write_head("polycast-measure 1");
    const bool able = rank_server_run(MPI_COMM_WORLD);
    if (rank == 0) {
        if (able)
            puts("end");
        fflush(stdout);
    }
    return able;
}

static bool measure_cost(char **argv) {
    char error[512] = "";
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        write_head("polycast-cost 1");
    const bool able = cost_measure(MPI_COMM_WORLD, argv[2], argv[3], error, sizeof error);
    if (rank == 0)
        write_end(able, error);
    return able;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const char *word = argc == 2 ? argv[1] : "";
    const bool able = strcmp(word, RANK_SERVER_ARGUMENT) == 0 ? serve_orders()
                      : strcmp(word, PLAN_SERVER_ARGUMENT) == 0
                          ? plan_server_run(MPI_COMM_WORLD, measure_calls)
                      : argc == 4 && strcmp(argv[1], COST_ARGUMENT) == 0 ? measure_cost(argv)
                                                                         : measure_calls(argc, argv);
    /* MPICH over UCX hangs in MPI_Finalize when one rank waits there for another that still has to flush its
     * connections; this gives all of them the time. Nothing is measured any more. */
    sleep(1);
    MPI_Finalize();
    return able ? 0 : 1;
}
