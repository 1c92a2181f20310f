/* deny ERROR[,RANK] SYSTEM_CALL… -- PROGRAM…: a filter that refuses system calls, by their numbers, to all ranks or to one, as profiles of container
 * runtimes do. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST_CALLS = 32, WRONG_USE = 2, NOT_STARTED = 127 };

static const struct {
    const char *name;
    int number;
} known[] = {{"process_vm_readv", SYS_process_vm_readv},
             {"memfd_create", SYS_memfd_create},
             {"recvmmsg", SYS_recvmmsg},
             {"sendmmsg", SYS_sendmmsg},
             {"sendmsg", SYS_sendmsg},
             {"getrandom", SYS_getrandom},
             {"clock_nanosleep", SYS_clock_nanosleep},
             {"madvise", SYS_madvise},
             {"fallocate", SYS_fallocate},
             {"prlimit64", SYS_prlimit64},
             {"getcpu", SYS_getcpu},
             {"sched_yield", SYS_sched_yield}};

static int number_of(const char *name) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0)
            return known[i].number;
    fprintf(stderr, "deny: no system call %s\n", name);
    exit(WRONG_USE);
}

static int is_meant(const char *only) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank)
        rank = getenv("PMI_RANK");
    return !*only || (rank && strcmp(rank, only + 1) == 0);
}

static void deny(struct sock_filter *filter, size_t length) {
    const struct sock_fprog program = {(unsigned short)length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("deny: seccomp");
        exit(WRONG_USE);
    }
}

int main(int argc, char **argv) {
    struct sock_filter filter[2 * MOST_CALLS + 2] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    size_t length = 1;
    char *only = "";
    const unsigned error = argc > 2 ? (unsigned)strtoul(argv[1], &only, 10) : 0;
    int next = 2;
    for (; next < argc && next < MOST_CALLS && strcmp(argv[next], "--") != 0; next++) {
        const unsigned number = (unsigned)number_of(argv[next]);
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (error == 0 || next + 1 >= argc) {
        fputs("usage: deny ERROR[,RANK] SYSTEM_CALL... -- PROGRAM...\n", stderr);
        return WRONG_USE;
    }
    if (is_meant(only))
        deny(filter, length);
    execvp(argv[next + 1], argv + next + 1);
    perror(argv[next + 1]);
    return NOT_STARTED;
}
