/* Values and types that reductions meet rarely: NaN and -0.0, which all ranks must get with the same bits; padding, in numbers and in pairs; bool, complex,
 * small, large and Fortran's types; ties of MINLOC and MAXLOC. */
#include "case.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>

enum { COUNT = 37, PAIRS = 9 };
static int calls, rank, ranks, call;

/* Some element is NaN on each rank in turn, some are zeros of both signs. */
static void same_bits(void) {
    const MPI_Op ops[] = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD};
    double mine[COUNT], found[COUNT], of_first[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const double nan = rank % 2 ? -NAN : NAN, zero = rank % 2 ? 0.0 : -0.0;
        mine[i] = (i + rank) % (ranks + 1) == 0 ? nan : i % 5 == 4 ? zero : rank + i;
    }
    for (int op = 0; op < 4; op++) {
        MPI_Allreduce(mine, found, COUNT, MPI_DOUBLE, ops[op], check_comm);
        memcpy(of_first, found, sizeof found);
        MPI_Bcast(of_first, COUNT, MPI_DOUBLE, 0, check_comm);
        CHECK(memcmp(of_first, found, sizeof found) == 0, "operation %d, call %d: ranks have other bits", op,
              call);
    }
}

#define EXPECT(type, mpi_type, op, value, expected)                                                          \
    do {                                                                                                     \
        type mine[COUNT], found[COUNT];                                                                      \
        memset(found, CHECK_UNWRITTEN, sizeof found);                                                        \
        for (int i = 0; i < COUNT; i++)                                                                      \
            mine[i] = (type)(value);                                                                         \
        MPI_Allreduce(mine, found, COUNT, mpi_type, op, check_comm);                                         \
        for (int i = 0; i < COUNT; i++)                                                                      \
            CHECK(found[i] == (type)(expected), #op " of " #mpi_type ", call %d: element %d", call, i);      \
    } while (0)

static void types(void) {
    long bits = 0;
    for (int of = 0; of < ranks; of++)
        bits ^= of + 1;
    EXPECT(long double, MPI_LONG_DOUBLE, MPI_SUM, rank + 1, ranks * (ranks + 1) / 2);
    EXPECT(bool, MPI_C_BOOL, MPI_LOR, rank == 0, true);
    EXPECT(bool, MPI_C_BOOL, MPI_LAND, rank != 0, false);
    /* No sum overflows: Open MPI 4.1 saturates those of few bits where it has AVX. */
    EXPECT(int8_t, MPI_INT8_T, MPI_SUM, 7, 7 * ranks);
    EXPECT(uint16_t, MPI_UINT16_T, MPI_PROD, 65535, ranks % 2 ? 65535 : 1);
    EXPECT(long, MPI_LONG, MPI_BXOR, rank + 1, bits);
    EXPECT(MPI_Count, MPI_COUNT, MPI_SUM, (MPI_Count)1 << 40, (MPI_Count)ranks << 40);
    EXPECT(MPI_Aint, MPI_AINT, MPI_MAX, rank, ranks - 1);
    EXPECT(MPI_Offset, MPI_OFFSET, MPI_MIN, rank, 0);
    EXPECT(double complex, MPI_C_DOUBLE_COMPLEX, MPI_SUM, 1 + rank * I, ranks + ranks * (ranks - 1) / 2 * I);
}

struct double_int {
    double value;
    int index;
};
struct long_double_int {
    long double value;
    int index;
};

/* Where values are alike the lowest index wins. */
static void pairs(void) {
    struct double_int mine[PAIRS], found[PAIRS];
    struct long_double_int long_mine[PAIRS], long_found[PAIRS];
    memset(mine, CHECK_UNWRITTEN, sizeof mine);
    memset(long_mine, CHECK_UNWRITTEN, sizeof long_mine);
    for (int i = 0; i < PAIRS; i++) {
        mine[i].value = i % 2 ? 1.5 : rank;
        long_mine[i].value = rank;
        mine[i].index = long_mine[i].index = rank;
    }
    MPI_Allreduce(mine, found, PAIRS, MPI_DOUBLE_INT, MPI_MINLOC, check_comm);
    for (int i = 0; i < PAIRS; i++)
        CHECK(found[i].index == 0, "minloc %d, call %d: rank %d", i, call, found[i].index);
    MPI_Reduce(mine, found, PAIRS, MPI_DOUBLE_INT, MPI_MAXLOC, call % ranks, check_comm);
    for (int i = 0; i < PAIRS && rank == call % ranks; i++)
        CHECK(found[i].index == (i % 2 ? 0 : ranks - 1), "maxloc %d, call %d: rank %d", i, call,
              found[i].index);
    MPI_Allreduce(long_mine, long_found, PAIRS, MPI_LONG_DOUBLE_INT, MPI_MAXLOC, check_comm);
    for (int i = 0; i < PAIRS; i++)
        CHECK(long_found[i].index == ranks - 1, "maxloc of long doubles, call %d: rank %d", call,
              long_found[i].index);
}

static void fortran(void) {
    const int mine[] = {rank == 1, 1, 0, rank, 2, 0};
    int found[6];
    MPI_Allreduce(mine, found, 6, MPI_LOGICAL, MPI_LOR, check_comm);
    CHECK(found[1] && !found[2] && !!found[0] == (ranks > 1), "logicals of Fortran, call %d", call);
    MPI_Allreduce(mine, found, 3, MPI_2INT, MPI_MAXLOC, check_comm);
    CHECK(found[0] == (ranks > 1) && found[1] == 1 && found[2] == 0 && found[3] == 0, "pairs of int, call %d",
          call);
}

static void body(void) {
    for (call = 0; call < calls; call++) {
        same_bits();
        types();
        pairs();
        fortran();
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    ranks = check_size();
    check_each_setting(body);
    check_ok("values");
    MPI_Finalize();
    return 0;
}
