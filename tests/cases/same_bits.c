/* The same numbers are added up again and again by the same ranks. All ranks must have the same bits; and MPI recommends that each call gives the same
 * ("MPI_Reduce", advice to implementors), which who compares two runs bit by bit relies on. Where it does not, rank 0 prints `CHANGED allreduce doubles=3
 * call=256`, and goes on. Of the bits of each kind of sum it prints a digest, `BITS reduce doubles=3 0123456789abcdef`: other runs, on whatever nodes, can
 * be compared. With CHECK_ROOTS in the environment roots of reductions change from call to call, and have the bits that all ranks have of an allreduce. */
#include "case.h"

enum { LONG = 5000, FEW = 100 };
static const int counts[] = {1, 3, 64, 511, 512, 1024, 8192, 65536};
enum { COUNTS = sizeof counts / sizeof *counts };
static int calls, rank;

/* Of sizes and signs for which the order of additions shows. */
static double number(int i) {
    const double size = 1.0 / 3 + (double)((rank * 7919L + i * 104729L) % 1000003) / 7.0;
    return rank % 3 ? size : -size;
}

/* FNV-1a. */
static void print_bits(const char *name, const double *sums, int count) {
    unsigned long digest = 14695981039346656037UL;
    const unsigned char *bytes = (const unsigned char *)sums;
    for (size_t i = 0; i < (size_t)count * sizeof(double); i++)
        digest = (digest ^ bytes[i]) * 1099511628211UL;
    if (rank == 0)
        printf("BITS %s doubles=%d %016lx\n", name, count, digest);
}

static void expect_alike(const double *found, size_t bytes, int count) {
    double *of_first = check_allocate(bytes);
    memcpy(of_first, found, bytes);
    MPI_Bcast(of_first, count, MPI_DOUBLE, 0, check_comm);
    CHECK(memcmp(of_first, found, bytes) == 0, "ranks have different sums of %d doubles", count);
    free(of_first);
}

static void sums(int count) {
    const size_t bytes = (size_t)count * sizeof(double);
    double *mine = check_allocate(bytes), *first = check_allocate(bytes), *found = check_allocate(bytes);
    int has_changed = 0;
    for (int i = 0; i < count; i++)
        mine[i] = number(i);
    for (int call = 0; call < (count > LONG && calls > FEW ? FEW : calls); call++) {
        MPI_Allreduce(mine, found, count, MPI_DOUBLE, MPI_SUM, check_comm);
        if (call == 0)
            memcpy(first, found, bytes);
        if (!has_changed && memcmp(first, found, bytes) != 0) {
            has_changed = 1;
            if (rank == 0)
                printf("CHANGED allreduce doubles=%d call=%d\n", count, call);
        }
        expect_alike(found, bytes, count);
    }
    print_bits("allreduce", first, count);
    free(mine);
    free(first);
    free(found);
}

/* The same at its root, which is always the same, or each in turn. */
static void sums_at_roots(int count) {
    const size_t bytes = (size_t)count * sizeof(double);
    double *mine = check_allocate(bytes), *first = check_allocate(bytes), *found = check_allocate(bytes);
    int has_changed = 0;
    const int is_in_turn = getenv("CHECK_ROOTS") != NULL;
    for (int i = 0; i < count; i++)
        mine[i] = number(i);
    if (is_in_turn)
        MPI_Allreduce(mine, first, count, MPI_DOUBLE, MPI_SUM, check_comm);
    for (int call = 0; call < (count > LONG && calls > FEW ? FEW : calls); call++) {
        const int root = is_in_turn ? call % check_size() : 0, is_first = !is_in_turn && call == 0;
        MPI_Reduce(mine, is_first ? first : found, count, MPI_DOUBLE, MPI_SUM, root, check_comm);
        if (rank == root && !is_first && !has_changed && memcmp(first, found, bytes) != 0) {
            has_changed = 1;
            printf("CHANGED reduce doubles=%d call=%d\n", count, call);
        }
    }
    print_bits("reduce", first, count);
    free(mine);
    free(first);
    free(found);
}

static void body(void) {
    for (int i = 0; i < COUNTS; i++) {
        sums(counts[i]);
        sums_at_roots(counts[i]);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    check_each_setting(body);
    check_ok("same_bits");
    MPI_Finalize();
    return 0;
}
