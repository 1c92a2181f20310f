/* Datatypes that deceive: 64 one-byte blocks of which two are exchanged, and types that were made by MPI 4's functions with
 * large counts. */
#include "check.h"

#include <string.h>

/* Blocks `a` and `b` of 64 are exchanged at the root; every pair, since any weak test overlooks some. */
static void exchanged(int a, int b) {
    enum { BLOCKS = 64 };
    int lengths[BLOCKS], displacements[BLOCKS];
    unsigned char message[BLOCKS];
    MPI_Datatype type;
    for (int i = 0; i < BLOCKS; i++) {
        lengths[i] = 1;
        displacements[i] = i == a ? b : i == b ? a : i;
        message[i] = (unsigned char)(check_rank() == 0 ? i : CHECK_UNWRITTEN);
    }
    MPI_Type_indexed(BLOCKS, lengths, displacements, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    if (check_rank() == 0)
        MPI_Bcast(message, 1, type, 0, check_comm);
    else
        MPI_Bcast(message, BLOCKS, MPI_BYTE, 0, check_comm);
    for (int i = 0; i < BLOCKS && check_rank() != 0; i++)
        CHECK(message[i] == displacements[i], "blocks %d and %d exchanged: byte %d is %d, expected %d", a, b,
              i, message[i], displacements[i]);
    MPI_Type_free(&type);
}

#if MPI_VERSION >= 4
static void broadcast_ints(MPI_Datatype type, int ints, int count, const char *name) {
    int data[1000];
    for (int i = 0; i < 1000; i++)
        data[i] = check_rank() == 1 ? i : -1;
    MPI_Bcast(data, count, type, 1, check_comm);
    for (int i = 0; i < ints * count && check_rank() != 1; i++)
        CHECK(data[i] == i, "%s: int %d is %d", name, i, data[i]);
    MPI_Type_free(&type);
}

static void large_counts(void) {
    MPI_Datatype inner, type;
    MPI_Type_contiguous_c(50, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast_ints(type, 50, 20, "MPI_Type_contiguous_c");
    MPI_Type_vector_c(10, 5, 5, MPI_INT, &type);
    MPI_Type_commit(&type);
    broadcast_ints(type, 50, 20, "MPI_Type_vector_c");
    MPI_Type_contiguous_c(5, MPI_INT, &inner);
    MPI_Type_contiguous(10, inner, &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&inner);
    broadcast_ints(type, 50, 20, "MPI_Type_contiguous of MPI_Type_contiguous_c");
}
#else
static void large_counts(void) {
}
#endif

static void all_types(void) {
    exchanged(4, 15);
    for (int b = 1; b < 64; b++)
        exchanged(0, b);
    large_counts();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    check_each_algorithm(all_types);
    check_ok("bcast_types");
    MPI_Finalize();
}
