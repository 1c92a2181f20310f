/* A program with floating-point traps, as compilers of Fortran set them for a whole program, and with other rounding on each rank: calls give the right
 * data, nobody is ended by SIGFPE, ranks go on choosing alike, and what the program has set and raised is there afterwards. Its own sums are
 * rounded and raise exceptions as it has set, whoever adds them up.
 *
 * Traps are set when MPI has begun: Open MPI of Debian 13 divides by zero there itself. */
#define _GNU_SOURCE
#include "check.h"

#include <fenv.h>
#include <float.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

enum { CALLS = 700, MOST = 1 << 16, TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };

static int rank, ranks;

/* Some of the ranks also take the smallest numbers for zero. */
static void set_environment(int number) {
    static const int modes[] = {FE_UPWARD, FE_TONEAREST, FE_DOWNWARD, FE_TOWARDZERO};
    fesetround(modes[number % 4]);
#ifdef __x86_64__
    if (number % 2) {
        _mm_setcsr(_mm_getcsr() | 0x8040);
    }
#endif
    feenableexcept(TRAPS);
}

static unsigned control(void) {
#ifdef __x86_64__
    return _mm_getcsr() & ~0x3fu;
#else
    return (unsigned)(fegetround() | fegetexcept() << 16);
#endif
}

static void broadcast_and_reduce(int *mine, int *all) {
    for (int call = 0; call < CALLS; call++) {
        const int count = call % 97 == 0 ? MOST : 1 << call % 14, root = call % ranks;
        for (int i = 0; i < count; i += 31) {
            mine[i] = rank == root ? call + i : -1;
        }
        MPI_Bcast(mine, count, MPI_INT, root, MPI_COMM_WORLD);
        for (int i = 0; i < count; i += 31) {
            CHECK(mine[i] == call + i, "broadcast %d of %d: element %d is %d", call, count, i, mine[i]);
        }
        mine[0] = rank + call;
        MPI_Allreduce(mine, all, count < 4096 ? count : 4096, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(all[0] == ranks - 1 + call, "allreduce %d: %d", call, all[0]);
        MPI_Reduce(mine, all, count < 4096 ? count : 4096, MPI_INT, MPI_MIN, root, MPI_COMM_WORLD);
        CHECK(rank != root || all[0] == call, "reduce %d: %d", call, all[0]);
        if (call % 10 == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

/* All ranks round alike here, as for a sum they must. */
static void sum_in_each_mode(void) {
    static const struct {
        int mode;
        double sum;
    } cases[] = {
        {FE_UPWARD, 1.0 + DBL_EPSILON}, {FE_DOWNWARD, 1.0}, {FE_TOWARDZERO, 1.0}, {FE_TONEAREST, 1.0}};
    fedisableexcept(FE_ALL_EXCEPT);
    for (int call = 0; call < CALLS; call++) {
        const int mode = cases[call % 4].mode;
        /* One rank has 1, another what is lost beside it. */
        const double mine = rank == 0 ? 1.0 : rank == 1 ? DBL_EPSILON / 8 : 0.0;
        double sum = 0;
        fesetround(mode);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == cases[call % 4].sum, "sum %d in mode %d: %a", call, mode, sum);
        CHECK(fegetround() == mode, "rounding was changed by call %d", call);
    }
    fesetround(FE_TONEAREST);
}

/* What the MPI raises when it adds up is raised by polycast's way, too; on the rank that adds up last, at least, if on no other. */
static void raise_in_sums(void) {
    for (int call = 0; call < CALLS; call++) {
        const double mine = call % 2 ? DBL_MAX : 1.0;
        double sum = 0;
        feclearexcept(FE_ALL_EXCEPT);
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        const int raised = fetestexcept(FE_OVERFLOW | FE_INVALID | FE_DIVBYZERO) != 0;
        int on_any = 0;
        MPI_Allreduce(&raised, &on_any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        CHECK(on_any == call % 2, "sum %d of %g: raised %d", call, mine, on_any);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *mine = calloc(MOST, sizeof *mine), *all = calloc(MOST, sizeof *all);
    set_environment(rank);
    const unsigned before = control();
    broadcast_and_reduce(mine, all);
    CHECK(control() == before, "the environment was %x and is %x", before, control());
    sum_in_each_mode();
    raise_in_sums();
    free(mine);
    free(all);
    check_ok("collective_traps");
    return MPI_Finalize();
}
