/* What sockets that are not MPI's, or are more than usual, cost broadcasts whose ranks sleep on sockets: see sockets.sh.
 *
 * Usage: sockets ROUNDS CALLS BYTES CONNECTIONS. In each round each circumstance has so many calls, in an order that changes; prints for each of
 * them the median over the rounds of (its median call / that of the calls without), with an interval that holds it with some 95 %. Ends with 1 where all
 * of the interval is beyond 1.05. */
#include <arpa/inet.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NOTHING, CONNECTIONS, THREAD, READABLE, CIRCUMSTANCES, MAX_CALLS = 1000, MAX_ROUNDS = 500 };
static const char *const names[] = {"nothing", "many connections", "a thread that drains the sockets",
                                    "a socket that is always readable"};
static const double MOST = 1.05;

static int listener = -1, *ends, connections, most_watched;
static struct sockaddr_in address = {.sin_family = AF_INET};
/* What the thread does every 200 microseconds: it is there in all circumstances, for to be there takes time, too. */
static atomic_bool is_over, drains;

static void need(int is_right, const char *what) {
    if (is_right)
        return;
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void *drain(void *communicator) {
    while (!is_over) {
        int is_there;
        if (drains)
            MPI_Iprobe(MPI_ANY_SOURCE, 1, *(MPI_Comm *)communicator, &is_there, MPI_STATUS_IGNORE);
        usleep(200);
    }
    return NULL;
}

/* Connections of this process with itself, two sockets each. */
static void connect_many(int count) {
    for (int i = 0; i < count; i++) {
        int from = socket(AF_INET, SOCK_STREAM, 0);
        need(from >= 0 && connect(from, (struct sockaddr *)&address, sizeof address) == 0, "connect");
        int to = accept(listener, NULL, NULL);
        need(to >= 0, "accept");
        ends[connections++] = from, ends[connections++] = to;
    }
}

static void disconnect(void) {
    while (connections > 0)
        close(ends[--connections]);
}

static int by_size(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

/* Sockets that epolls of this process watch, its MPI's among them. */
static int watched(void) {
    int count = 0;
    for (int descriptor = 0; descriptor < 4096; descriptor++) {
        char path[64], line[256];
        snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file))
            count += strncmp(line, "tfd:", 4) == 0;
        if (file)
            fclose(file);
    }
    return count;
}

/* The median call, of the slowest rank each. Before it the others wait so long for the root that they look again which sockets there are. */
static double measure(int is_root, char *message, int bytes, int calls) {
    static double seconds[MAX_CALLS], slowest[MAX_CALLS];
    for (int call = -5; call < calls; call++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (call == -5 && is_root)
            usleep(150000);
        double began = MPI_Wtime();
        MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (call >= 0)
            seconds[call] = MPI_Wtime() - began;
    }
    MPI_Allreduce(seconds, slowest, calls, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(slowest, (size_t)calls, sizeof *slowest, by_size);
    return slowest[calls / 2];
}

static double with(int circumstance, int is_root, char *message, int bytes, int calls, int many) {
    drains = circumstance == THREAD;
    if (circumstance == CONNECTIONS || circumstance == READABLE)
        connect_many(circumstance == READABLE ? 1 : many / 2);
    if (circumstance == READABLE)
        need(send(ends[0], "", 1, 0) == 1, "send");
    double median = measure(is_root, message, bytes, calls);
    most_watched = circumstance == CONNECTIONS ? watched() : most_watched;
    disconnect();
    return median;
}

/* MPICH over UCX hangs in MPI_Finalize, with polycast and without it, where a rank waits there for the answer of one that looks at no messages any more
 * (docs/decisions/0010-goodbye.md): of 8 runs without this 5 hung with polycast, 7 without. So all answer for a while. */
static void answer_all(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (const double until = MPI_Wtime() + 1; MPI_Wtime() < until; usleep(1000)) {
        int is_there;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int level, rank;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int rounds = argc > 4 ? atoi(argv[1]) : 0, calls = argc > 4 ? atoi(argv[2]) : 0;
    int bytes = argc > 4 ? atoi(argv[3]) : 0, many = argc > 4 ? atoi(argv[4]) : 0;
    if (rounds < 6 || rounds > MAX_ROUNDS || calls < 1 || calls > MAX_CALLS || level < MPI_THREAD_MULTIPLE) {
        fprintf(stderr, "expected ROUNDS (6 to %d) CALLS (up to %d) BYTES CONNECTIONS, and threads\n",
                MAX_ROUNDS, MAX_CALLS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    char *message = malloc((size_t)bytes);
    ends = malloc(((size_t)many + 2) * sizeof *ends);
    need(message && ends, "malloc");
    memset(message, rank, (size_t)bytes);
    socklen_t length = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    listener = socket(AF_INET, SOCK_STREAM, 0);
    need(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 64) == 0,
         "listen");
    getsockname(listener, (struct sockaddr *)&address, &length);
    MPI_Comm apart;
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    pthread_t thread;
    need(pthread_create(&thread, NULL, drain, &apart) == 0, "pthread_create");

    static double ratios[CIRCUMSTANCES][MAX_ROUNDS], micros[CIRCUMSTANCES][MAX_ROUNDS];
    for (int round = 0; round < rounds; round++) {
        for (int turn = 0; turn < CIRCUMSTANCES; turn++) {
            int circumstance = (turn + round) % CIRCUMSTANCES;
            micros[circumstance][round] = with(circumstance, rank == 0, message, bytes, calls, many) * 1e6;
        }
        for (int circumstance = 0; circumstance < CIRCUMSTANCES; circumstance++)
            ratios[circumstance][round] = micros[circumstance][round] / micros[NOTHING][round];
    }
    is_over = 1;
    pthread_join(thread, NULL);

    /* The root waits for nobody. */
    int here = rank == 0 ? many : most_watched, fewest = 0;
    MPI_Allreduce(&here, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (fewest < many) {
        if (rank == 0)
            printf("some rank watches %d sockets only, so nothing is shown for %d\n", fewest, many);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }

    /* Order statistics: n/2 -/+ the root of n, as 1.96 times half the root of n is nearly that. */
    int lost = 0, outside = (int)floor(rounds / 2.0 - sqrt(rounds));
    outside = outside < 0 ? 0 : outside;
    for (int circumstance = 0; circumstance < CIRCUMSTANCES; circumstance++) {
        double *sorted = ratios[circumstance];
        qsort(sorted, (size_t)rounds, sizeof *sorted, by_size);
        qsort(micros[circumstance], (size_t)rounds, sizeof(double), by_size);
        int is_lost = sorted[outside] > MOST;
        lost |= is_lost;
        if (rank == 0)
            printf("%-34s %8.0f us  %.3f  [%.3f, %.3f]%s\n", names[circumstance],
                   micros[circumstance][rounds / 2], sorted[rounds / 2], sorted[outside],
                   sorted[rounds - 1 - outside], is_lost ? "  slower" : "");
    }
    MPI_Comm_free(&apart);
    fflush(stdout);
    answer_all();
    MPI_Finalize();
    return lost;
}
