#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

MPI_Comm check_comm;
static const char *algorithm = "";

int check_rank(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int check_size(void) {
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

void check_fail(const char *format, ...) {
    char message[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "FAIL rank %d: %s%s%s\n", check_rank(), algorithm, *algorithm ? ": " : "", message);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort(); /* some launchers let MPI_Abort return */
}

/* The finaliser of SplitMix64: neighbours and neighbouring seeds share no bytes but by chance. */
uint64_t check_word(uint64_t seed, uint64_t index) {
    uint64_t z = seed * 0xD1B54A32D192ED03u + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void check_fill(void *buffer, size_t bytes, uint64_t seed) {
    unsigned char *at = buffer;
    for (size_t done = 0; done < bytes; done += 8) {
        uint64_t word = check_word(seed, done / 8);
        memcpy(at + done, &word, bytes - done < 8 ? bytes - done : 8);
    }
}

static void fail_at(const unsigned char *found, const unsigned char *expected, size_t offset,
                    const char *what) {
    size_t wrong = 0;
    while (found[wrong] == expected[wrong])
        wrong++;
    check_fail("%s: byte %zu is 0x%02x, expected 0x%02x", what, offset + wrong, found[wrong],
               expected[wrong]);
}

void check_pattern(const void *buffer, size_t bytes, uint64_t seed, const char *what) {
    const unsigned char *at = buffer;
    for (size_t done = 0; done < bytes; done += 8) {
        uint64_t word = check_word(seed, done / 8);
        if (memcmp(at + done, &word, bytes - done < 8 ? bytes - done : 8) != 0)
            fail_at(at + done, (const unsigned char *)&word, done, what);
    }
}

void check_unwritten(const void *buffer, size_t bytes, const char *what) {
    const unsigned char *at = buffer;
    for (size_t i = 0; i < bytes; i++)
        CHECK(at[i] == CHECK_UNWRITTEN, "%s: byte %zu outside the message was overwritten with 0x%02x", what,
              i, at[i]);
}

void check_broadcast(MPI_Comm comm, void *message, size_t bytes, int root, uint64_t seed, const char *what) {
    int rank;
    MPI_Comm_rank(comm, &rank);
    memset(message, CHECK_UNWRITTEN, bytes);
    if (rank == root)
        check_fill(message, bytes, seed);
    MPI_Bcast(message, (int)bytes, MPI_BYTE, root, comm);
    check_pattern(message, bytes, seed, what);
}

long check_resident_kib(void) {
    char line[256];
    long kib = -1;
    FILE *status = fopen("/proc/self/status", "r");
    CHECK(status, "cannot read /proc/self/status");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    fclose(status);
    return kib;
}

void *check_allocate(size_t bytes) {
    void *memory = malloc(bytes ? bytes : 1);
    CHECK(memory, "no memory for %zu bytes", bytes);
    return memory;
}

static void configure(const char *name, const char *value) {
    int (*function)(const char *, const char *);
    *(void **)&function = dlsym(RTLD_DEFAULT, "polycast_configure");
    CHECK(function, "settings are wanted, but no polycast is loaded");
    CHECK(function(name, value) == 0, "polycast knows no setting %s", name);
}

/* What is set counts for communicators that are used for the first time. */
static void on_a_new_communicator(void (*body)(void)) {
    MPI_Comm_dup(MPI_COMM_WORLD, &check_comm);
    body();
    MPI_Comm_free(&check_comm);
}

void check_each_algorithm(void (*body)(void)) {
    const char *wanted = getenv("CHECK_ALGORITHMS");
    check_comm = MPI_COMM_WORLD;
    if (!wanted) {
        body();
        return;
    }
    char *rest = strdup(wanted);
    while ((algorithm = strsep(&rest, " "))) {
        configure("POLYCAST_BCAST", algorithm);
        on_a_new_communicator(body);
    }
    algorithm = "";
}

void check_each_setting(void (*body)(void)) {
    const char *wanted = getenv("CHECK_SETTINGS");
    check_comm = MPI_COMM_WORLD;
    if (!wanted) {
        body();
        return;
    }
    char *sets = strdup(wanted), *set;
    while ((set = strsep(&sets, ";"))) {
        algorithm = strdup(set);
        for (char *setting; (setting = strsep(&set, " "));) {
            char *name = strsep(&setting, "=");
            CHECK(setting, "CHECK_SETTINGS: expected NAME=VALUE, found %s", name);
            configure(name, setting);
        }
        on_a_new_communicator(body);
    }
    algorithm = "";
}

void check_ok(const char *name) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0) {
        printf("OK %s\n", name);
        fflush(stdout);
    }
    /* MPICH over UCX hangs in MPI_Finalize when a rank waits there for others to answer that have gone on to wait for their
     * launcher, and so no longer look at messages. Tests across hosts give all ranks the time to answer before. */
    const char *pause_ms = getenv("CHECK_PAUSE_MS");
    const double until = MPI_Wtime() + (pause_ms ? atoi(pause_ms) / 1e3 : 0);
    while (MPI_Wtime() < until) {
        int there;
        MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
        usleep(500);
    }
}
