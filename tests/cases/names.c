/* A program whose own functions have names of libc's that its MPI does not need and a preloaded library might: linked with -rdynamic, as hosts of
 * plug-ins are, its definitions go before libc's for everybody. Compiled without libc's headers for them. */
#include "case.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NAMED(name, result)                                                                                  \
    long name(long first) {                                                                                  \
        (void)first;                                                                                         \
        return result;                                                                                       \
    }
NAMED(getrandom, 4)
NAMED(getentropy, 0)
NAMED(statx, 1)
NAMED(gettid, -7)
NAMED(memfd_create, 1)
NAMED(sendmmsg, -9)
NAMED(recvmmsg, -9)
NAMED(copy_file_range, -1)
NAMED(splice, -1)
NAMED(tee, 1)
#ifdef OPEN_MPI /* MPICH's UCX ends the job over it */
NAMED(process_vm_readv, -3)
#endif
NAMED(fallocate, -3)
NAMED(posix_fallocate, 99)
NAMED(getauxval, 1)
NAMED(sched_getcpu, -1)
NAMED(error, 1)
NAMED(gamma_, 1)
NAMED(index_, 1)
NAMED(step, 1)
NAMED(polycast_version, -1)

enum { MOST = 400000 };
static int calls;
static unsigned char *message;

static void body(void) {
    const int rank = check_rank(), ranks = check_size();
    for (int call = 0; call < calls; call++) {
        const size_t bytes = 1 + (size_t)call * 1324 % MOST;
        int sum = -1;
        check_broadcast(check_comm, message, bytes, call % ranks, (uint64_t)call, "broadcast");
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, check_comm);
        CHECK(sum == ranks * (ranks - 1) / 2, "the sum of call %d is %d", call, sum);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    message = check_allocate(MOST);
    check_each_setting(body);
    check_ok("names");
    MPI_Finalize();
    return 0;
}
