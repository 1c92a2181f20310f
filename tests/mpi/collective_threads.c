/* Threads of each rank start nonblocking calls, and make blocking ones, at the same time, each on a communicator of its own. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, ROUNDS = 150, COUNT = 6000 };

static MPI_Comm comms[THREADS];
static int rank, size;

static uint64_t seed(int thread, int round, int which) {
    return (uint64_t)((thread * ROUNDS + round) * 2 + which);
}

static void *run(void *number) {
    const int thread = (int)(intptr_t)number;
    unsigned char *messages[2] = {check_allocate(COUNT), check_allocate(COUNT)};
    for (int round = 0; round < ROUNDS; round++) {
        const int root = round % size, one = round + thread;
        MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        int sum = 0;
        for (int i = 0; i < 2; i++) {
            check_fill(messages[i], COUNT, rank == root ? seed(thread, round, i) : 0);
        }
        MPI_Ibcast(messages[0], COUNT, MPI_BYTE, root, comms[thread], &requests[0]);
        MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comms[thread], &requests[1]);
        if (round % 3 == 0) {
            MPI_Bcast(messages[1], COUNT, MPI_BYTE, root, comms[thread]);
        } else {
            MPI_Ibcast(messages[1], COUNT, MPI_BYTE, root, comms[thread], &requests[2]);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        check_pattern(messages[0], COUNT, seed(thread, round, 0), "the first message of a round");
        check_pattern(messages[1], COUNT, seed(thread, round, 1), "the second message of a round");
        CHECK(sum == size * one, "thread %d, round %d: the sum is %d, expected %d", thread, round, sum,
              size * one);
    }
    free(messages[0]);
    free(messages[1]);
    return NULL;
}

int main(int argc, char **argv) {
    int level;
    pthread_t threads[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    CHECK(level == MPI_THREAD_MULTIPLE, "this MPI has no MPI_THREAD_MULTIPLE");
    rank = check_rank();
    size = check_size();
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        MPI_Comm_free(&comms[i]);
    }
    check_ok("collective_threads");
    MPI_Finalize();
}
