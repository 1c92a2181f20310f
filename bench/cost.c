#include "cost.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common_clock.h"

enum { WARM_UP_CALLS = 2, COSTS = 2 };

static int64_t ns_of(struct timeval time) {
    return (int64_t)time.tv_sec * 1000000000 + (int64_t)time.tv_usec * 1000;
}

/* Adds `sign` times what this process has used. */
static void add_used(int64_t used_ns[COSTS], int sign) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    used_ns[0] += sign * ns_of(usage.ru_utime);
    used_ns[1] += sign * ns_of(usage.ru_stime);
}

static void write_costs(int64_t elapsed_ns, const int64_t *costs_ns, int ranks) {
    printf("elapsed %lld\n", (long long)elapsed_ns);
    for (int rank = 0; rank < ranks; rank++)
        printf("cost %d %lld %lld\n", rank, (long long)costs_ns[COSTS * rank],
               (long long)costs_ns[COSTS * rank + 1]);
}

static void gather_costs(MPI_Comm comm, const int64_t used_ns[COSTS], int64_t elapsed_ns) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int64_t *all_ns = rank == 0 ? malloc(sizeof *all_ns * COSTS * (size_t)ranks) : NULL;
    if (rank == 0 && !all_ns)
        MPI_Abort(comm, 1);
    MPI_Gather(used_ns, COSTS, MPI_INT64_T, all_ns, COSTS, MPI_INT64_T, 0, comm);
    if (rank == 0)
        write_costs(elapsed_ns, all_ns, ranks);
    free(all_ns);
}

bool cost_measure(MPI_Comm comm, const char *bytes_text, const char *calls_text, char *error,
                  int error_size) {
    const long bytes = strtol(bytes_text, NULL, 10), calls = strtol(calls_text, NULL, 10);
    if (bytes < 1 || bytes > INT_MAX || calls < 1 || calls > INT_MAX) {
        snprintf(error, (size_t)error_size, "cost: expected BYTES and CALLS from 1 to %d, found %s and %s",
                 INT_MAX, bytes_text, calls_text);
        return false;
    }
    char *message = malloc((size_t)bytes);
    int has_room = message != NULL, room_everywhere = 0;
    MPI_Allreduce(&has_room, &room_everywhere, 1, MPI_INT, MPI_MIN, comm);
    if (!room_everywhere) {
        snprintf(error, (size_t)error_size, "no memory for %ld bytes on every rank", bytes);
        free(message);
        return false;
    }
    memset(message, 1, (size_t)bytes);
    for (int call = 0; call < WARM_UP_CALLS; call++)
        MPI_Bcast(message, (int)bytes, MPI_BYTE, 0, comm);
    MPI_Barrier(comm);
    int64_t used_ns[COSTS] = {0};
    const int64_t begun_ns = local_now_ns();
    add_used(used_ns, -1);
    for (long call = 0; call < calls; call++)
        MPI_Bcast(message, (int)bytes, MPI_BYTE, 0, comm);
    add_used(used_ns, 1);
    const int64_t elapsed_ns = local_now_ns() - begun_ns;
    free(message);
    gather_costs(comm, used_ns, elapsed_ns);
    return true;
}
