/* The kernel lets the ranks of a node read each other's memory (process_vm_readv) when they agree on it, and refuses it later: to rank 1, then to all,
 * by a filter that each loads for itself between two calls. Long calls go on as before. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { CALLS = 4, BYTES = 700000, NUMBERS = 100000 };

static void refuse_reading(void) {
    struct sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = sizeof refuse / sizeof *refuse, .filter = refuse};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl");
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "no filter can be loaded");
    char byte = 1, copy = 0;
    struct iovec from = {&byte, 1}, to = {&copy, 1};
    CHECK(process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0 && errno == EPERM, "it is still allowed");
}

static unsigned char *message, *all;
static uint64_t *numbers, *sums;

static void call(int seed) {
    const int size = check_size(), rank = check_rank();
    for (int root = 0; root < size; root++) {
        check_broadcast(MPI_COMM_WORLD, message, BYTES, root, (uint64_t)(seed + root), "refused");
    }
    check_fill(message, BYTES, (uint64_t)(seed + 50 + rank));
    MPI_Allgather(message, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, MPI_COMM_WORLD);
    for (int of = 0; of < size; of++) {
        check_pattern(all + (size_t)of * BYTES, BYTES, (uint64_t)(seed + 50 + of), "gathered");
    }
    for (int at = 0; at < NUMBERS; at++) {
        numbers[at] = (uint64_t)(seed + at) * (uint64_t)(rank + 1);
    }
    MPI_Allreduce(numbers, sums, NUMBERS, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int at = 0; at < NUMBERS; at++) {
        const uint64_t due = (uint64_t)(seed + at) * (uint64_t)(size * (size + 1) / 2);
        CHECK(sums[at] == due, "sum %d is %llu", at, (unsigned long long)sums[at]);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int size = check_size();
    message = check_allocate(BYTES);
    all = check_allocate((size_t)size * BYTES);
    numbers = check_allocate(NUMBERS * sizeof *numbers);
    sums = check_allocate(NUMBERS * sizeof *sums);
    for (int at = 0; at < 3 * CALLS; at++) {
        if ((at == CALLS && check_rank() == 1) || (at == 2 * CALLS && check_rank() != 1)) {
            refuse_reading();
        }
        call(1000 * at);
    }
    check_ok("collective_refused");
    MPI_Finalize();
    return 0;
}
