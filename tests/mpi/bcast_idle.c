/* How much CPU a rank uses while it waits in MPI_Bcast for a late root.
 *
 * Usage: bcast_idle [BYTES [SECONDS [ROUNDS]]]. Prints `IDLE bytes=N ranks=N late_s=T max_percent=P
 * mean_percent=P`: CPU time (all threads, user and system) inside MPI_Bcast over the time for which the root
 * was late, per waiting rank. Other processes take time from a rank, but add nothing to its CPU time. */
#include "check.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static double cpu_seconds(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

/* The share of a core, in percent, that this rank used while it waited. The root's own share is 0. */
static double wait_once(void *message, int bytes, double late_seconds, uint64_t seed) {
    int is_root = check_rank() == 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_root) {
        usleep((useconds_t)(late_seconds * 1e6));
        check_fill(message, (size_t)bytes, seed);
    }
    double cpu = cpu_seconds();
    MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    cpu = cpu_seconds() - cpu;
    check_pattern(message, (size_t)bytes, seed, "from a late root");
    return is_root ? 0 : 100 * cpu / late_seconds;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int bytes = argc > 1 ? atoi(argv[1]) : 4096, rounds = argc > 3 ? atoi(argv[3]) : 2;
    double late_seconds = argc > 2 ? atof(argv[2]) : 1, worst = 0, total = 0;
    void *message = check_allocate((size_t)bytes);
    MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); /* attaching is not waiting */
    for (int round = 0; round < rounds; round++) {
        double percent = wait_once(message, bytes, late_seconds, 1 + (uint64_t)round);
        worst = percent > worst ? percent : worst;
        total += percent;
    }
    double all_worst, all_total;
    MPI_Reduce(&worst, &all_worst, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&total, &all_total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (check_rank() == 0)
        printf("IDLE bytes=%d ranks=%d late_s=%g max_percent=%.1f mean_percent=%.1f\n", bytes, check_size(),
               late_seconds, all_worst, all_total / rounds / (check_size() > 1 ? check_size() - 1 : 1));
    free(message);
    check_ok("bcast_idle");
    MPI_Finalize();
}
