/* MPI_THREAD_MULTIPLE: some threads make first broadcasts, each on communicators of its own, while another makes communicators of
 * groups by MPI_Comm_create_group, which is collective over the group alone.
 *
 * Usage: bcast_beside [COMMUNICATORS], per thread, 40 by default */
#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, BYTES = 6000, CREATORS_TAG = 7 };

static int count = 40;

static void broadcast(MPI_Comm comm, uint64_t seed, const char *what) {
    unsigned char message[BYTES];
    int ranks;
    MPI_Comm_size(comm, &ranks);
    check_broadcast(comm, message, sizeof message, (int)(seed % (uint64_t)ranks), seed, what);
}

struct worker {
    pthread_t thread;
    int index;
    MPI_Comm *comms; /* made before the threads start */
};

static void *first_broadcasts(void *argument) {
    struct worker *w = argument;
    for (int i = 0; i < count; i++) {
        broadcast(w->comms[i], (uint64_t)(i * THREADS + w->index), "the first on a duplicate");
        MPI_Comm_free(&w->comms[i]);
    }
    return NULL;
}

/* In its thread: all ranks, and all but one, by turns. */
static void create_groups(MPI_Comm parent) {
    int ranks = check_size();
    MPI_Group all;
    MPI_Comm_group(parent, &all);
    for (int i = 0; i < count; i++) {
        int excluded = i % ranks, is_part = i % 2 == 0 || check_rank() != excluded;
        MPI_Group some = all;
        MPI_Comm comm;
        if (i % 2)
            MPI_Group_excl(all, 1, &excluded, &some);
        if (is_part) {
            MPI_Comm_create_group(parent, some, CREATORS_TAG, &comm);
            broadcast(comm, (uint64_t)i, "the first of a group");
            MPI_Comm_free(&comm);
        }
        if (i % 2)
            MPI_Group_free(&some);
    }
    MPI_Group_free(&all);
}

int main(int argc, char **argv) {
    static struct worker workers[THREADS];
    int provided;
    MPI_Comm parent;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE, "the library provides thread level %d only", provided);
    CHECK(check_size() >= 3, "needs at least 3 ranks, has %d", check_size());
    if (argc > 1)
        count = atoi(argv[1]);
    MPI_Comm_dup(MPI_COMM_WORLD, &parent);
    for (int t = 0; t < THREADS; t++) {
        workers[t].index = t;
        workers[t].comms = check_allocate((size_t)count * sizeof *workers[t].comms);
        for (int i = 0; i < count; i++)
            MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comms[i]);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&workers[t].thread, NULL, first_broadcasts, &workers[t]) == 0,
              "cannot start thread %d", t);
    create_groups(parent);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(workers[t].thread, NULL);
        free(workers[t].comms);
    }
    MPI_Comm_free(&parent);
    check_ok("bcast_beside");
    MPI_Finalize();
}
