#define _GNU_SOURCE
#include "common_clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EXCHANGES = 16, TAG_PING = 1 };

int64_t local_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_until_ns(int64_t local_ns, int64_t spin_ns) {
    int64_t wake_ns = local_ns - spin_ns;
    if (wake_ns > local_now_ns()) {
        /* Timers may be 50 us late by default. The slack is given back, so that a library that sleeps inside
         * the broadcast meets the same timers as in any other program. */
        prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
        struct timespec wake = {.tv_sec = wake_ns / 1000000000, .tv_nsec = wake_ns % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) != 0)
            ;
        prctl(PR_SET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL);
    }
    while (local_now_ns() < local_ns)
        ;
}

static uint64_t hash_bytes(uint64_t hash, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

/* The same for two ranks exactly when they read one clock: one boot of one kernel, and one time namespace,
 * which can shift CLOCK_MONOTONIC for containers. Unreadable: a clock of its own. */
static uint64_t clock_identity(int rank) {
    uint64_t hash = 0xcbf29ce484222325u;
    char text[64];
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");
    size_t length = file ? fread(text, 1, sizeof text, file) : 0;
    if (file)
        fclose(file);
    if (length == 0)
        return hash_bytes(hash, (const char *)&rank, sizeof rank);
    hash = hash_bytes(hash, text, length);
    ssize_t name_length = readlink("/proc/self/ns/time", text, sizeof text);
    return name_length > 0 ? hash_bytes(hash, text, (size_t)name_length) : hash;
}

void clock_open(struct common_clock *clock, MPI_Comm control, bool pingpong) {
    *clock = (struct common_clock){.control = control};
    MPI_Comm_rank(control, &clock->rank);
    MPI_Comm_size(control, &clock->ranks);
    uint64_t *identity = calloc((size_t)clock->ranks, sizeof *identity);
    clock->leader = calloc((size_t)clock->ranks, sizeof *clock->leader);
    clock->kernel = calloc((size_t)clock->ranks, sizeof *clock->kernel);
    if (!identity || !clock->leader || !clock->kernel)
        MPI_Abort(control, 1);
    uint64_t own = clock_identity(clock->rank);
    MPI_Allgather(&own, 1, MPI_UINT64_T, identity, 1, MPI_UINT64_T, control);
    for (int rank = 0; rank < clock->ranks; rank++) {
        while (identity[clock->kernel[rank]] != identity[rank])
            clock->kernel[rank]++;
        clock->leader[rank] = pingpong ? rank : clock->kernel[rank];
        clock->clocks += clock->leader[rank] == rank;
    }
    free(identity);
    clock_synchronise(clock);
    clock->first = clock->latest;
}

void clock_close(struct common_clock *clock) {
    free(clock->kernel);
    free(clock->leader);
}

/* Rank 0's side of the ping-pongs with `leader`. */
static struct clock_estimate ask(MPI_Comm control, int leader) {
    struct clock_estimate best = {.error_ns = INT64_MAX};
    for (int i = 0; i < EXCHANGES; i++) {
        int64_t remote_ns;
        int64_t sent_ns = local_now_ns();
        MPI_Send(NULL, 0, MPI_BYTE, leader, TAG_PING, control);
        MPI_Recv(&remote_ns, 1, MPI_INT64_T, leader, TAG_PING, control, MPI_STATUS_IGNORE);
        int64_t received_ns = local_now_ns();
        int64_t error_ns = (received_ns - sent_ns + 1) / 2;
        if (error_ns < best.error_ns)
            best = (struct clock_estimate){remote_ns, sent_ns + error_ns - remote_ns, error_ns};
    }
    return best;
}

static void answer(MPI_Comm control) {
    for (int i = 0; i < EXCHANGES; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, 0, TAG_PING, control, MPI_STATUS_IGNORE);
        int64_t now_ns = local_now_ns();
        MPI_Send(&now_ns, 1, MPI_INT64_T, 0, TAG_PING, control);
    }
}

void clock_synchronise(struct common_clock *clock) {
    clock->before = clock->latest;
    if (clock->clocks == 1) {
        clock->latest = (struct clock_estimate){.local_ns = local_now_ns()};
        return;
    }
    struct clock_estimate *all = NULL;
    if (clock->rank == 0) {
        all = calloc((size_t)clock->ranks, sizeof *all);
        if (!all)
            MPI_Abort(clock->control, 1);
        all[0].local_ns = local_now_ns();
        for (int rank = 1; rank < clock->ranks; rank++) {
            int leader = clock->leader[rank];
            all[rank] = leader == rank ? ask(clock->control, rank) : all[leader];
            if (all[rank].error_ns > clock->worst_error_ns)
                clock->worst_error_ns = all[rank].error_ns;
        }
    } else if (clock->leader[clock->rank] == clock->rank) {
        answer(clock->control);
    }
    MPI_Scatter(all, 3, MPI_INT64_T, &clock->latest, 3, MPI_INT64_T, 0, clock->control);
    free(all);
}

/* The offset at `local_ns` on the line through two estimates; constant while they are closer than `least_ns`.
 */
static int64_t offset_on_line_ns(struct clock_estimate a, struct clock_estimate b, int64_t least_ns,
                                 int64_t local_ns) {
    double span_ns = (double)(b.local_ns - a.local_ns);
    if (span_ns <= (double)least_ns)
        return b.offset_ns;
    double drift = (double)(b.offset_ns - a.offset_ns) / span_ns;
    return b.offset_ns + (int64_t)(drift * (double)(local_ns - b.local_ns));
}

int64_t clock_to_common_ns(const struct common_clock *clock, int64_t local_ns) {
    return local_ns + offset_on_line_ns(clock->before, clock->latest, 0, local_ns);
}

int64_t clock_to_local_ns(const struct common_clock *clock, int64_t common_ns) {
    /* Drift below 1e-3 makes the offset at the sought time and at this first guess the same. */
    int64_t guess_ns = common_ns - clock->latest.offset_ns;
    /* Over a short span the errors of the estimates would pass for drift and be multiplied. */
    const int64_t least_ns = 2000000000;
    return common_ns - offset_on_line_ns(clock->first, clock->latest, least_ns, guess_ns);
}

int64_t clock_observed_error_ns(const struct common_clock *clock) {
    int64_t own_ns = clock->kernel[clock->rank] == 0 ? llabs(clock->latest.offset_ns) : 0, worst_ns = 0;
    MPI_Reduce(&own_ns, &worst_ns, 1, MPI_INT64_T, MPI_MAX, 0, clock->control);
    return worst_ns;
}
