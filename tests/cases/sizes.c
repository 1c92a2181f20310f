/* Broadcasts and sums of sizes on both sides of each limit of shared memory, for ranks that the system keeps apart: in namespaces of their own, or refused
 * what they ask of the kernel. Each says its process number, `PID 1`: which namespaces they have is seen by it. */
#include "case.h"

#include <unistd.h>

enum { MOST = 3 << 20 };
static int calls, rank, ranks;
static unsigned char *message;
static long *mine, *sums;

static void sum(int count) {
    for (int i = 0; i < count; i++)
        mine[i] = rank * 1000L + i;
    MPI_Allreduce(mine, sums, count, MPI_LONG, MPI_SUM, check_comm);
    for (int i = 0; i < count; i++)
        CHECK(sums[i] == 1000L * ranks * (ranks - 1) / 2 + (long)ranks * i, "sum %d of %d", i, count);
}

static void body(void) {
    for (int call = 0; call < calls; call++) {
        const int bytes = call % 40 == 39 ? MOST : 1 << call % 17;
        check_broadcast(check_comm, message, (size_t)bytes, call % ranks, (uint64_t)call, "broadcast");
        sum(bytes < 8 ? 1 : bytes / 8);
    }
}

int main(int argc, char **argv) {
    printf("PID %d\n", (int)getpid());
    fflush(stdout);
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    ranks = check_size();
    message = check_allocate(MOST);
    mine = check_allocate(MOST);
    sums = check_allocate(MOST);
    check_each_setting(body);
    check_ok("sizes");
    MPI_Finalize();
    return 0;
}
