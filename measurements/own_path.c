/*
 * Where the time of polycast's own path goes, counted: the MPI's own broadcast beside one that polycast serves, alternated in one job.
 * measurements/own_path.sh starts it.
 *
 * Usage: own_path CALLS DELAY_US BYTES SERVED…      SERVED as POLYCAST_BCAST takes it; `stock` is the MPI's own.
 *
 * All ranks call at deadlines; the root DELAY_US behind the others, and the time runs from its call to the last return. In between ranks
 * sleep. Counts are of the calling threads inside MPI_Bcast: system calls by the kernel's trace points (`-` where the user may not read
 * them), tests by functions of the MPI's profiling interface that stand in this program. Of Open MPI, whose messages between hosts go by
 * writev, the root's time from the call to the first one is printed: what is done before there is anything on the wire.
 *
 * OWN_PATH_BURDEN=readable: each rank has a connection in which something stands that nobody reads. OWN_PATH_BURDEN=1500: so many idle
 * connections.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <math.h>
#include <mpi.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define MAX_VARIANTS 8
#define TRACE_POINTS 9
#define COUNTS (TRACE_POINTS + 3)
#define WARM_UP 20
#define BLOCK 20
/* For each repetition, and what is added for its bytes. One that takes longer makes its successor late, which is left out. */
#define SLOT_NS 4000000

static const char *const titles[COUNTS] = {"calls",  "poll",  "ppoll", "epoll", "yield",     "sleep",
                                           "writev", "readv", "recv",  "tests", "voluntary", "involuntary"};

static int64_t tests;
static int group = -1, group_size, place_in_group[TRACE_POINTS];

static void *next(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    return function ? function : (fprintf(stderr, "own_path: no %s\n", name), abort(), NULL);
}

int PMPI_Testsome(int count, MPI_Request *requests, int *done, int *indices, MPI_Status *statuses) {
    static int (*function)(int, MPI_Request *, int *, int *, MPI_Status *);
    function = function ? function : next("PMPI_Testsome");
    tests++;
    return function(count, requests, done, indices, statuses);
}

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Of the first since this was 0. */
static int64_t first_writev_ns;

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    static ssize_t (*function)(int, const struct iovec *, int);
    function = function ? function : next("writev");
    first_writev_ns = first_writev_ns ? first_writev_ns : now_ns();
    return function(descriptor, parts, count);
}

static void sleep_until(int64_t ns) {
    const struct timespec end = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR) {
    }
}

/* Their numbers come in the environment: hosts of the lab do not see the file system that has them. */
static void open_trace_points(void) {
    char *numbers = getenv("OWN_PATH_TRACE_POINTS");
    for (int i = 0; i < TRACE_POINTS; i++) {
        place_in_group[i] = -1;
        const int id = numbers ? (int)strtol(numbers, &numbers, 10) : 0;
        struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                       .size = sizeof attr,
                                       .config = (uint64_t)id,
                                       .read_format = PERF_FORMAT_GROUP};
        const int descriptor = id ? (int)syscall(SYS_perf_event_open, &attr, 0, -1, group, 0) : -1;
        if (descriptor >= 0) {
            group = group < 0 ? descriptor : group;
            place_in_group[i] = group_size++;
        }
    }
}

static void read_counts(int64_t counts[COUNTS]) {
    uint64_t values[TRACE_POINTS + 1] = {0};
    struct rusage usage;
    if (group >= 0 && read(group, values, sizeof values) < 0)
        memset(values, 0, sizeof values);
    for (int i = 0; i < TRACE_POINTS; i++)
        counts[i] = place_in_group[i] < 0 ? -1 : (int64_t)values[1 + place_in_group[i]];
    getrusage(RUSAGE_THREAD, &usage);
    counts[TRACE_POINTS] = tests;
    counts[TRACE_POINTS + 1] = usage.ru_nvcsw;
    counts[TRACE_POINTS + 2] = usage.ru_nivcsw;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median and its 95 % interval by ranks. */
static void median(double *values, int count, double out[3]) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    const int half_width = (int)ceil(0.98 * sqrt(count));
    const int low = count / 2 - half_width, high = count / 2 + half_width;
    out[0] = count ? values[count / 2] : NAN;
    out[1] = count ? values[low < 0 ? 0 : low] : NAN;
    out[2] = count ? values[high >= count ? count - 1 : high] : NAN;
}

static MPI_Comm communicator_for(const char *served, char *buffer) {
    int (*configure)(const char *, const char *) =
        (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "polycast_configure");
    if (configure)
        configure("POLYCAST_BCAST", served);
    else if (strcmp(served, "stock"))
        return MPI_COMM_NULL;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Bcast(buffer, 8, MPI_BYTE, 0, comm);
    return comm;
}

/* Connections of this process to itself; returns one end of the last. */
static int connect_to_self(int count) {
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    int end = -1;
    int failed = bind(listener, (struct sockaddr *)&address, length) || listen(listener, 8) ||
                 getsockname(listener, (struct sockaddr *)&address, &length);
    for (int i = 0; i < count && !failed; i++) {
        end = socket(AF_INET, SOCK_STREAM, 0);
        failed = connect(end, (struct sockaddr *)&address, length) || accept(listener, NULL, NULL) < 0;
    }
    close(listener);
    if (failed) {
        perror("own_path: connections of a process to itself");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return end;
}

static void take_burden(const char *burden) {
    if (burden && *burden) {
        const int is_readable = !strcmp(burden, "readable");
        const int end = connect_to_self(is_readable ? 1 : atoi(burden) / 2);
        if (is_readable && write(end, "unread", 6) != 6)
            MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

struct variant {
    const char *served;
    MPI_Comm comm;
    int64_t *called_ns, *first_writev_ns, *returned_ns;
    int64_t counts[COUNTS];
};

static int rank, ranks;

static void open_variant(struct variant *variant, const char *served, int calls, char *buffer, int bytes) {
    *variant = (struct variant){.served = served,
                                .comm = communicator_for(served, buffer),
                                .called_ns = calloc((size_t)calls, sizeof(int64_t)),
                                .first_writev_ns = calloc((size_t)calls, sizeof(int64_t)),
                                .returned_ns = calloc((size_t)calls, sizeof(int64_t))};
    if (variant->comm == MPI_COMM_NULL) {
        fprintf(stderr, "own_path: polycast is not loaded\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < WARM_UP; i++) {
        MPI_Bcast(buffer, bytes, MPI_BYTE, 0, variant->comm);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void measure_once(struct variant *variant, int call, int64_t begin_ns, char *buffer, int bytes) {
    int64_t before[COUNTS], after[COUNTS], again[COUNTS];
    sleep_until(begin_ns);
    read_counts(before);
    first_writev_ns = 0;
    variant->called_ns[call] = now_ns();
    MPI_Bcast(buffer, bytes, MPI_BYTE, 0, variant->comm);
    variant->returned_ns[call] = now_ns();
    variant->first_writev_ns[call] = first_writev_ns;
    read_counts(after);
    read_counts(again);
    /* What reading costs is the same again. */
    for (int i = 0; i < COUNTS; i++)
        variant->counts[i] += 2 * after[i] - before[i] - again[i];
}

/* From the root's call to the last return, of the repetitions in which all were in time. */
static int times_us(const struct variant *variant, int calls, double *us) {
    int64_t *last = calloc((size_t)calls, sizeof *last), *latest_call = calloc((size_t)calls, sizeof *last);
    MPI_Reduce(variant->returned_ns, last, calls, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(variant->called_ns, latest_call, calls, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    int count = 0;
    for (int i = 0; rank == 0 && i < calls; i++) {
        if (latest_call[i] <= variant->called_ns[i])
            us[count++] = (double)(last[i] - variant->called_ns[i]) / 1e3;
    }
    free(last);
    free(latest_call);
    return count;
}

static void print_first_writev(const struct variant *variant, int calls, double *us) {
    double middle[3];
    int count = 0;
    for (int i = 0; i < calls; i++) {
        if (variant->first_writev_ns[i])
            us[count++] = (double)(variant->first_writev_ns[i] - variant->called_ns[i]) / 1e3;
    }
    median(us, count, middle);
    if (count)
        printf("  root's call to its first writev: %.1f us (%.1f to %.1f)\n", middle[0], middle[1],
               middle[2]);
}

static void print_counts(const struct variant *variant, int calls) {
    for (int of = 0; of < ranks; of++) {
        int64_t counts[COUNTS];
        memcpy(counts, variant->counts, sizeof counts);
        if (of && rank == of)
            MPI_Send(counts, COUNTS, MPI_INT64_T, 0, 0, MPI_COMM_WORLD);
        if (rank)
            continue;
        if (of)
            MPI_Recv(counts, COUNTS, MPI_INT64_T, of, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("  rank %-3d", of);
        for (int i = 0; i < COUNTS; i++) {
            if (i < TRACE_POINTS && place_in_group[i] < 0)
                printf(" %11s", "-");
            else
                printf(" %11.2f", (double)counts[i] / calls);
        }
        printf("\n");
    }
}

int main(int argc, char **argv) {
    struct variant variants[MAX_VARIANTS];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int count = argc - 4;
    if (count < 1 || count > MAX_VARIANTS) {
        fprintf(stderr, "usage: own_path CALLS DELAY_US BYTES SERVED…\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const int calls = atoi(argv[1]), bytes = atoi(argv[3]);
    take_burden(getenv("OWN_PATH_BURDEN"));
    const int64_t delay_ns = atoll(argv[2]) * 1000, slot_ns = SLOT_NS + delay_ns + 40 * (int64_t)bytes;
    char *buffer = calloc(1, (size_t)bytes + 8);
    for (int v = 0; v < count; v++)
        open_variant(&variants[v], argv[4 + v], calls, buffer, bytes);
    open_trace_points();
    int64_t start_ns = 0;
    for (int call = 0; call < calls; call++) {
        const int in_block = call % BLOCK;
        if (in_block == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            start_ns = now_ns() + 20000000;
            MPI_Bcast(&start_ns, 1, MPI_INT64_T, 0, variants[0].comm);
        }
        for (int v = 0; v < count; v++) {
            const int64_t begin_ns = start_ns + (in_block * count + v) * slot_ns;
            measure_once(&variants[(v + call) % count], call, rank ? begin_ns : begin_ns + delay_ns, buffer,
                         bytes);
        }
    }
    double *us = calloc((size_t)calls, sizeof *us), first = 0;
    for (int v = 0; v < count; v++) {
        double middle[3];
        const int in_time = times_us(&variants[v], calls, us);
        median(us, in_time, middle);
        first = v ? first : middle[0];
        if (rank == 0) {
            printf("%d bytes, %s: %.1f us (%.1f to %.1f), x %.3f, n %d\n", bytes, variants[v].served,
                   middle[0], middle[1], middle[2], middle[0] / first, in_time);
            print_first_writev(&variants[v], calls, us);
            printf("  per call");
            for (int i = 0; i < COUNTS; i++)
                printf(" %11s", titles[i]);
            printf("\n");
        }
        print_counts(&variants[v], calls);
    }
    MPI_Finalize();
    return 0;
}
