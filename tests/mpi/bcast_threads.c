/* MPI_THREAD_MULTIPLE: threads broadcast at the same time, each on its own communicators, which it keeps
 * replacing, so that first broadcasts meet broadcasts under way.
 *
 * Usage: bcast_threads [BROADCASTS], per thread and communicator, 250 by default. */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, GENERATIONS = 4, LARGEST_BYTES = 20000 };

static int broadcasts_each = 250;

struct worker {
    pthread_t thread;
    int index;
    MPI_Comm generation[GENERATIONS]; /* made before the threads start: who makes them is not the point */
};

static void broadcasts(const struct worker *w, MPI_Comm comm, int generation, unsigned char *message) {
    char what[96];
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < broadcasts_each; i++) {
        size_t bytes = (size_t)(i * 7919 + w->index) % (i % 16 ? 2000 : LARGEST_BYTES);
        uint64_t seed = ((uint64_t)w->index * GENERATIONS + (uint64_t)generation) * 100000 + (uint64_t)i;
        int root = (i + w->index) % ranks;
        memset(message, CHECK_UNWRITTEN, bytes);
        if (rank == root)
            check_fill(message, bytes, seed);
        MPI_Bcast(message, (int)bytes, MPI_BYTE, root, comm);
        snprintf(what, sizeof what, "thread %d, communicator %d, broadcast %d", w->index, generation, i);
        check_pattern(message, bytes, seed, what);
    }
}

static void *work(void *argument) {
    struct worker *w = argument;
    unsigned char *message = check_allocate(LARGEST_BYTES);
    for (int g = 0; g < GENERATIONS; g++) {
        broadcasts(w, w->generation[g], g, message);
        MPI_Comm_free(&w->generation[g]);
    }
    free(message);
    return NULL;
}

int main(int argc, char **argv) {
    static struct worker workers[THREADS];
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "the library provides thread level %d only", provided);
    if (argc > 1)
        broadcasts_each = atoi(argv[1]);
    for (int t = 0; t < THREADS; t++) {
        workers[t].index = t;
        for (int g = 0; g < GENERATIONS; g++)
            MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].generation[g]);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&workers[t].thread, NULL, work, &workers[t]) == 0, "cannot start thread %d", t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(workers[t].thread, NULL);
    check_ok("bcast_threads");
    MPI_Finalize();
}
