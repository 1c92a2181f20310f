/* Broadcasts amid other traffic on the same communicator: wildcard receives, other collectives, nonblocking
 * broadcasts under way, rotating roots back to back, late ranks. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 60, LARGEST_BYTES = 9000 };

static unsigned char message[LARGEST_BYTES];

static void broadcast(size_t bytes, int root, uint64_t seed, const char *what) {
    memset(message, CHECK_UNWRITTEN, bytes);
    if (check_rank() == root)
        check_fill(message, bytes, seed);
    MPI_Bcast(message, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check_pattern(message, bytes, seed, what);
}

/* A receive that takes anything is posted before the broadcast, its message is sent after it: a broadcast
 * whose messages could be seen by the user would fill the receive. */
static void wildcard_receives(void) {
    int rank = check_rank(), ranks = check_size(), next = (rank + 1) % ranks,
        previous = (rank + ranks - 1) % ranks;
    for (int round = 0; round < ROUNDS; round++) {
        int sent = round * 1000 + rank, received[LARGEST_BYTES / sizeof(int)], count, unexpected;
        MPI_Request request;
        MPI_Status status;
        MPI_Irecv(received, LARGEST_BYTES / (int)sizeof(int), MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &request);
        broadcast((size_t)round * 149, round % ranks, (uint64_t)round, "under a wildcard receive");
        MPI_Test(&request, &unexpected, &status);
        /* A neighbour may already have passed its own broadcast and sent: then it must be that message. */
        MPI_Send(&sent, 1, MPI_INT, next, round, MPI_COMM_WORLD);
        if (!unexpected)
            MPI_Wait(&request, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(count == 1 && status.MPI_SOURCE == previous && status.MPI_TAG == round &&
                  received[0] == round * 1000 + previous,
              "round %d: the wildcard receive got %d ints from %d with tag %d", round, count,
              status.MPI_SOURCE, status.MPI_TAG);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void probe_sees_nothing(void) {
    for (int round = 0; round < ROUNDS; round++) {
        int seen;
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &seen, MPI_STATUS_IGNORE);
        CHECK(!seen, "round %d: MPI_Iprobe sees a message that no user sent", round);
        broadcast(3000, round % check_size(), 300 + (uint64_t)round, "between probes");
    }
    MPI_Barrier(MPI_COMM_WORLD); /* what follows sends messages that a late rank's last probe would see */
}

static void other_collectives(void) {
    int rank = check_rank(), ranks = check_size();
    for (int round = 0; round < ROUNDS; round++) {
        int own = rank + round, sum, *all = check_allocate(sizeof(int) * (size_t)ranks);
        broadcast(777, round % ranks, 500 + (uint64_t)round, "before a reduction");
        MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == ranks * (ranks - 1) / 2 + ranks * round, "round %d: the sum is %d", round, sum);
        broadcast(LARGEST_BYTES, (round + 1) % ranks, 600 + (uint64_t)round, "before a gather");
        MPI_Allgather(&own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
        for (int r = 0; r < ranks; r++)
            CHECK(all[r] == r + round, "round %d: gathered %d from rank %d", round, all[r], r);
        free(all);
    }
}

/* Nonblocking broadcasts that end before, and others that end after the blocking ones. */
static void nonblocking_outstanding(void) {
    static unsigned char early[2500], late[2500];
    int ranks = check_size();
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request requests[2];
        int root = round % ranks, is_root = check_rank() == root;
        memset(early, CHECK_UNWRITTEN, sizeof early);
        memset(late, CHECK_UNWRITTEN, sizeof late);
        if (is_root) {
            check_fill(early, sizeof early, 1000 + (uint64_t)round);
            check_fill(late, sizeof late, 2000 + (uint64_t)round);
        }
        MPI_Ibcast(early, sizeof early, MPI_BYTE, root, MPI_COMM_WORLD, &requests[0]);
        broadcast(1500, (round + 1) % ranks, 3000 + (uint64_t)round, "beside MPI_Ibcast");
        MPI_Ibcast(late, sizeof late, MPI_BYTE, root, MPI_COMM_WORLD, &requests[1]);
        broadcast(5000, root, 4000 + (uint64_t)round, "beside two MPI_Ibcast");
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_pattern(early, sizeof early, 1000 + (uint64_t)round, "MPI_Ibcast");
        check_pattern(late, sizeof late, 2000 + (uint64_t)round, "second MPI_Ibcast");
    }
}

/* A persistent broadcast, started time and again, beside blocking ones. */
static void persistent(void) {
#if MPI_VERSION >= 4
    static unsigned char data[2500];
    int root = check_size() - 1;
    MPI_Request request;
    MPI_Bcast_init(data, sizeof data, MPI_BYTE, root, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int round = 0; round < ROUNDS; round++) {
        memset(data, CHECK_UNWRITTEN, sizeof data);
        if (check_rank() == root)
            check_fill(data, sizeof data, 7000 + (uint64_t)round);
        MPI_Start(&request);
        broadcast(1500, round % check_size(), 7500 + (uint64_t)round, "beside a persistent one");
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check_pattern(data, sizeof data, 7000 + (uint64_t)round, "MPI_Bcast_init");
    }
    MPI_Request_free(&request);
#endif
}

/* No rank waits for another between these: data of the next broadcast meets that of the one before. */
static void back_to_back(void) {
    for (int i = 0; i < 40 * ROUNDS; i++)
        broadcast((size_t)(i * 37) % 4000, i % 3 ? i % check_size() : 0, 5000 + (uint64_t)i, "back to back");
}

/* One rank after the other comes 20 ms late, in turn as the root and as a receiver. */
static void late_ranks(void) {
    int rank = check_rank(), ranks = check_size();
    for (int late = 0; late < ranks; late++)
        for (int root = 0; root < ranks; root++) {
            if (rank == late)
                usleep(20000);
            broadcast(4000, root, 9000 + (uint64_t)(late * ranks + root), "with a late rank");
            broadcast(10, (root + 1) % ranks, 9500 + (uint64_t)(late * ranks + root), "after a late rank");
        }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    probe_sees_nothing();
    wildcard_receives();
    other_collectives();
    nonblocking_outstanding();
    persistent();
    back_to_back();
    late_ranks();
    check_ok("bcast_mixed");
    MPI_Finalize();
}
