/*
 * Ranks vote when MPI begins, and one that has no polycast never answers: the others would wait for ever without a word. While they wait a
 * thread looks at the clock, of each process, since nobody can be asked; it calls no MPI function, takes no signal, and ends with the wait.
 *
 *   half the patience over   the process leaves its name where the others of its node find it: a socket without a file
 *   the patience over        the lowest rank that has left one on this node speaks for all of them, and again after each three times as long
 */
#define _GNU_SOURCE
#include "patience.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Then each minute. */
#define PATIENCE_SECONDS 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_ended;
static int is_over, is_watched;
static pthread_t watcher;

/* Whatever processes of one job on one node have in common, and no other job has. */
static void name_job(char *name, size_t room) {
    const char *space = getenv("PMIX_NAMESPACE"), *job = getenv("SLURM_JOB_ID"),
               *step = getenv("SLURM_STEP_ID");
    if (space) {
        snprintf(name, room, "polycast-waits-%.60s-", space);
    } else if (job && step) {
        snprintf(name, room, "polycast-waits-%.20s.%.20s-", job, step);
    } else {
        snprintf(name, room, "polycast-waits-%d-", (int)getppid());
    }
}

/* -1 if it cannot be left. */
static int leave_name(const char *job, int rank) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s%d", job, rank) + 1;
    const int socket_of_name = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (socket_of_name >= 0) {
        /* If another one has it, it stands there all the same. */
        (void)!bind(socket_of_name, (struct sockaddr *)&address,
                    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length));
    }
    return socket_of_name;
}

/* How many of the job have left their names on this node, and the lowest rank of them. */
static int look_for_names(const char *job, int *lowest) {
    FILE *names = fopen("/proc/net/unix", "re");
    char line[512];
    int found = 0;
    while (names && fgets(line, sizeof line, names)) {
        const char *name = strchr(line, '@');
        if (name && strncmp(name + 1, job, strlen(job)) == 0) {
            const int rank = atoi(name + 1 + strlen(job));
            *lowest = found == 0 || rank < *lowest ? rank : *lowest;
            found++;
        }
    }
    if (names) {
        fclose(names);
    }
    return found;
}

/* As launchers tell each rank; 0: unknown. */
static int ranks_on_this_node(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value) {
            return atoi(value);
        }
    }
    return 0;
}

static void say(const struct waiting *waiting, int seconds, int here) {
    char host[HOST_NAME_MAX + 1] = "", where[64] = "";
    gethostname(host, sizeof host - 1);
    const int of_node = ranks_on_this_node();
    if (here < of_node) {
        snprintf(where, sizeof where, " (%d of the %d on this node)", of_node - here, of_node);
    } else if (of_node > 0 && of_node < waiting->size) {
        snprintf(where, sizeof where, " (none of the %d on this node)", of_node);
    }
    fprintf(stderr, "polycast: rank %d of %d on %s has waited %d s in MPI_Init for %s%s. %s\n", waiting->rank,
            waiting->size, host, seconds, waiting->for_whom, where, waiting->remedy);
}

/* A number of seconds, for tests. */
static int patience(void) {
    const char *value = getenv("POLYCAST_TEST_PATIENCE");
    const int seconds = value ? atoi(value) : 0;
    return seconds > 0 ? seconds : PATIENCE_SECONDS;
}

/* 1: the wait was over first. */
static int ends_before(const struct timespec *begun, int seconds) {
    const struct timespec deadline = {begun->tv_sec + seconds, begun->tv_nsec};
    int error = 0;
    pthread_mutex_lock(&lock);
    while (!is_over && error != ETIMEDOUT) {
        error = pthread_cond_timedwait(&has_ended, &lock, &deadline);
    }
    const int has_ended_before = is_over;
    pthread_mutex_unlock(&lock);
    return has_ended_before;
}

static void *watch(void *of) {
    const struct waiting *waiting = of;
    const int first = patience();
    struct timespec begun;
    char job[96];
    clock_gettime(CLOCK_MONOTONIC, &begun);
    if (ends_before(&begun, first / 2)) {
        return NULL;
    }
    name_job(job, sizeof job);
    const int name = leave_name(job, waiting->rank);
    for (int seconds = first; !ends_before(&begun, seconds); seconds += 3 * first) {
        int lowest = waiting->rank;
        const int here = look_for_names(job, &lowest);
        if (lowest == waiting->rank) {
            say(waiting, seconds, here > 0 ? here : 1);
        }
    }
    if (name >= 0) {
        close(name);
    }
    return NULL;
}

/* Signals are for the program's own threads. */
static int start(const struct waiting *waiting) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&watcher, NULL, watch, (void *)waiting);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return !error;
}

void patience_begins(const struct waiting *waiting) {
    pthread_condattr_t attributes;
    is_watched = 0;
    is_over = 0;
    if (waiting->size < 2 || pthread_condattr_init(&attributes)) {
        return;
    }
    if (!pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) &&
        !pthread_cond_init(&has_ended, &attributes)) {
        is_watched = start(waiting);
    }
    pthread_condattr_destroy(&attributes);
}

void patience_ends(void) {
    if (is_watched) {
        pthread_mutex_lock(&lock);
        is_over = 1;
        pthread_cond_signal(&has_ended);
        pthread_mutex_unlock(&lock);
        pthread_join(watcher, NULL);
        pthread_cond_destroy(&has_ended);
        is_watched = 0;
    }
}
