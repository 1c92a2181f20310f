/*
 * polycast-witness RECORD PROCESS ID SOCKET: waits until rank 0 of a job has ended, and reports for it if it could not. The first two are
 * descriptors, of the memory in which its report stands (record.h) and of the process; the third is its number. The last one, which may be
 * empty, names a socket on which `polycast run --report` takes what else goes to standard error: a launcher may leave before its ranks.
 *
 * It is no child of rank 0, holds nothing of it but standard error, blocks all signals, and ends with it.
 */
#define _GNU_SOURCE
#include "record.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* linux/pidfd.h from Linux 6.15 on, in its first size. */
struct ending {
    uint64_t mask, cgroup;
    uint32_t numbers[11];
    int32_t exit_code;
};
#define GET_ENDING _IOWR(0xFF, 11, struct ending)
#define HAS_EXIT_CODE (1u << 3)

/* For so long it is tried to learn how the process ended. */
#define TRIES 200
#define TRY_NS 1000000

/* Whatever rank 0 had open: others wait for the end of a connection of its. */
static void close_others(int one, int other) {
    const unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);
    const unsigned gaps[3][2] = {{3, low - 1}, {low + 1, high - 1}, {high + 1, ~0u}};
    for (int i = 0; i < 3; i++) {
        if (gaps[i][0] <= gaps[i][1] && syscall(SYS_close_range, gaps[i][0], gaps[i][1], 0)) {
            const long most = sysconf(_SC_OPEN_MAX);
            for (unsigned file = gaps[i][0]; file <= gaps[i][1] && file < (most > 0 ? most : 1024); file++) {
                close((int)file);
            }
        }
    }
    const int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
        if (nothing > STDERR_FILENO) {
            close(nothing);
        }
    }
}

/* Of a process that nobody has waited for yet: the last number of its line, as wait tells it. 0: it is not there to be read. */
static int read_zombie(const char *process, int *status) {
    char name[64], line[2048];
    snprintf(name, sizeof name, "/proc/%.16s/stat", process);
    FILE *file = fopen(name, "re");
    const size_t count = file ? fread(line, 1, sizeof line - 1, file) : 0;
    if (file) {
        fclose(file);
    }
    line[count] = 0;
    /* The name of the program, in parentheses, may have any characters. */
    const char *state = strrchr(line, ')'), *last = strrchr(line, ' ');
    if (!state || strncmp(state, ") Z ", 4) != 0 || !last) {
        return 0;
    }
    *status = atoi(last + 1);
    return 1;
}

/* As wait tells it. 0: nobody knows. */
static int find_status(int process, const char *number, int *status) {
    for (int try = 0; try < TRIES; try++) {
        struct ending ending = {.mask = HAS_EXIT_CODE};
        const int failed = ioctl(process, GET_ENDING, &ending);
        if (!failed && ending.mask & HAS_EXIT_CODE) {
            *status = ending.exit_code;
            return 1;
        }
        if (read_zombie(number, status)) {
            return 1;
        }
        if (failed) {
            return 0;
        }
        nanosleep(&(struct timespec){.tv_nsec = TRY_NS}, NULL);
    }
    return 0;
}

/* Signals that end processes. */
static const char *const names[] = {
    [SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",   [SIGTRAP] = "TRAP",
    [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",   [SIGKILL] = "KILL", [SIGUSR1] = "USR1",
    [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2", [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM",
    [SIGXCPU] = "XCPU", [SIGXFSZ] = "XFSZ", [SIGSYS] = "SYS",
};

/* In letters that need no quotes in JSON. */
static void describe(int process, const char *number, char *words, size_t room) {
    int status;
    if (!find_status(process, number, &status)) {
        snprintf(words, room, "nobody knows how");
    } else if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        const char *name = signal < (int)(sizeof names / sizeof *names) ? names[signal] : NULL;
        if (name) {
            snprintf(words, room, "SIG%s", name);
        } else {
            snprintf(words, room, "signal %d", signal);
        }
    } else {
        snprintf(words, room, "exit status %d", WEXITSTATUS(status));
    }
}

/* 0: all of it is written. */
static int write_all(int file, const char *bytes, size_t count) {
    while (count > 0) {
        const ssize_t written = write(file, bytes, count);
        if (written < 0 && errno != EINTR) {
            return errno;
        }
        bytes += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return 0;
}

static int write_halves(int file, const struct text *text, const char *how) {
    const int error = write_all(file, text->begin, text->first_half_bytes);
    const int then = error ? error : write_all(file, how, strlen(how));
    return then ? then
                : write_all(file, text->begin + text->first_half_bytes, text->bytes - text->first_half_bytes);
}

/* Whole, or as it was. */
static int replace(const char *name, const struct text *text, const char *how) {
    char beside[FILE_ROOM + 32];
    snprintf(beside, sizeof beside, "%s.%d", name, (int)getpid());
    const int file = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        return errno;
    }
    int error = write_halves(file, text, how);
    error = close(file) && !error ? errno : error;
    error = !error && rename(beside, name) ? errno : error;
    if (error) {
        unlink(beside);
    }
    return error;
}

/* -1: there is nobody. */
static int connect_to(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(name);
    const int found =
        *name && length < sizeof address.sun_path ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (found < 0) {
        return -1;
    }
    /* Without a file. */
    memcpy(address.sun_path + 1, name, length);
    const size_t size = offsetof(struct sockaddr_un, sun_path) + 1 + length;
    if (connect(found, (struct sockaddr *)&address, (socklen_t)size)) {
        close(found);
        return -1;
    }
    return found;
}

static void write_document(const struct document *document, const char *how, int listener) {
    const uint32_t standing = atomic_load_explicit(&document->standing, memory_order_acquire);
    if (standing < 1 || standing > 2) {
        return;
    }
    const struct text *text = &document->texts[standing - 1];
    if (text->bytes > TEXT_ROOM || text->first_half_bytes > text->bytes) {
        return;
    }
    if (!*document->file) {
        if (listener < 0 || write_halves(listener, text, how)) {
            write_halves(STDERR_FILENO, text, how);
        }
        return;
    }
    const int error = replace(document->file, text, how);
    if (error) {
        dprintf(STDERR_FILENO, "polycast: warning: report %s: %s; rank 0 ended without MPI_Finalize (%s)\n",
                document->file, strerror(error), how);
    }
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "polycast-witness: polycast starts it where a report is wanted (docs/report.md)\n");
        return 2;
    }
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    const int record_file = atoi(words[1]), process = atoi(words[2]);
    close_others(record_file, process);
    const struct record *record = mmap(NULL, sizeof *record, PROT_READ, MAP_SHARED, record_file, 0);
    if (chdir("/") || record == MAP_FAILED || record->version != RECORD_VERSION) {
        return 1;
    }
    close(record_file);
    /* From now on, so that who listens knows whom to wait for. */
    const int listener = connect_to(words[4]);
    struct pollfd end = {.fd = process, .events = POLLIN};
    while (poll(&end, 1, -1) < 0 && errno == EINTR) {
    }
    if (!(end.revents & POLLIN) || atomic_load_explicit(&record->is_told, memory_order_acquire)) {
        return 0;
    }
    char how[64];
    describe(process, words[3], how, sizeof how);
    for (int i = 0; i < DOCUMENTS; i++) {
        write_document(&record->documents[i], how, listener);
    }
    return 0;
}
