/* A profiler's or watchdog's timer: a signal 2000 times a second, without SA_RESTART, from before MPI_Init on. Whatever waits may end with EINTR.
 *
 *   signals alarm|prof [CALLS] */
#include "case.h"

#include <signal.h>
#include <sys/time.h>

enum { MOST = 4 << 20, LIFE = 50 };
static int calls, rank, ranks;
static unsigned char *message;
static volatile sig_atomic_t has_ticked;

static void tick(int signal) {
    (void)signal;
    has_ticked = 1;
}

static void start(int is_profiler) {
    const struct sigaction action = {.sa_handler = tick};
    const struct itimerval each = {{0, 500}, {0, 500}};
    sigaction(is_profiler ? SIGPROF : SIGALRM, &action, NULL);
    setitimer(is_profiler ? ITIMER_PROF : ITIMER_REAL, &each, NULL);
}

static void call_once(MPI_Comm comm, int call) {
    const int bytes = call % 60 == 59 ? MOST : 1 << call % 18;
    check_broadcast(comm, message, (size_t)bytes, call % ranks, (uint64_t)call, "broadcast");
    long mine = rank, sum = -1;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, comm);
    CHECK(sum == (long)ranks * (ranks - 1) / 2, "the sum of call %d is %ld", call, sum);
}

/* On one communicator, and on others that come and go, with the ranks in another order. */
static void body(void) {
    MPI_Comm turned;
    for (int call = 0; call < calls; call++) {
        if (call % LIFE == 0)
            MPI_Comm_split(check_comm, 0, (rank + call) % ranks, &turned);
        call_once(check_comm, call);
        call_once(turned, call);
        if (call % LIFE == LIFE - 1 || call == calls - 1)
            MPI_Comm_free(&turned);
    }
}

int main(int argc, char **argv) {
    start(argc > 1 && strcmp(argv[1], "prof") == 0);
    MPI_Init(&argc, &argv);
    calls = case_calls(argc - 1, argv + 1);
    rank = check_rank();
    ranks = check_size();
    message = check_allocate(MOST);
    check_each_setting(body);
    CHECK(has_ticked, "no signal came");
    check_ok("signals");
    MPI_Finalize();
    return 0;
}
