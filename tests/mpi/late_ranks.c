/* Preloaded into `polycast bench`, so that all that it measures is known: broadcasts of 1,024 bytes from which the last rank returns 200 ms
 * after its data has come, the one before it after 100 ms, another rank r after r times 5 ms; answers that are 40 ms on their way; and
 * clocks that differ, rank r's being r times 400 ms ahead or, of even ranks, behind. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MILLISECOND_NS = 1000000, SECOND_NS = 1000000000, ANSWER_TAG = 77 };

static void sleep_ms(long ms) {
    const struct timespec time = {0, ms * MILLISECOND_NS};
    nanosleep(&time, NULL);
}

static long ahead_ms(clockid_t clock) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank || clock != CLOCK_MONOTONIC)
        return 0;
    return atol(rank) % 2 ? 400 * atol(rank) : -400 * atol(rank);
}

static struct timespec later(struct timespec time, long ms) {
    const long ns = time.tv_nsec + ms % 1000 * MILLISECOND_NS + SECOND_NS;
    return (struct timespec){time.tv_sec + ms / 1000 + ns / SECOND_NS - 1, ns % SECOND_NS};
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    const long failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed)
        *now = later(*now, ahead_ms(clock));
    return (int)failed;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    const struct timespec true_time = flags == TIMER_ABSTIME ? later(*time, -ahead_ms(clock)) : *time;
    return (int)syscall(SYS_clock_nanosleep, clock, flags, &true_time, left);
}

int MPI_Send(const void *buffer, int count, MPI_Datatype datatype, int to, int tag, MPI_Comm comm) {
    if (tag == ANSWER_TAG)
        sleep_ms(40);
    return PMPI_Send(buffer, count, datatype, to, tag, comm);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    const int result = PMPI_Bcast(buffer, count, datatype, root, comm);
    int bytes, rank, ranks;
    PMPI_Type_size(datatype, &bytes);
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &ranks);
    if (count * bytes == 1024)
        sleep_ms(rank == ranks - 1 ? 200 : rank == ranks - 2 ? 100 : 5 * rank);
    return result;
}
