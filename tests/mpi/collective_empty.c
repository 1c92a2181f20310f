/* Blocks of MPI_Allgatherv that are empty, from NULL, as an empty std::vector hands them in, and from where they would be received; and types
 * around those of MPI_Type_create_f90_real, which are predefined though they have no name. */
#include "check.h"

#include <stdlib.h>

enum { CALLS = 600, INTS = 3000, REALS = 1000 };

/* All ranks but the last have a block. */
static void gather(int is_in_place) {
    const int size = check_size(), rank = check_rank(), others = size - 1;
    int *counts = check_allocate((size_t)size * sizeof *counts),
        *places = check_allocate((size_t)size * sizeof *places);
    int *all = check_allocate((size_t)others * INTS * sizeof *all), *mine = NULL;
    for (int other = 0; other < size; other++) {
        counts[other] = other < others ? INTS : 0;
        places[other] = other * INTS;
    }
    if (rank < others)
        mine = check_allocate(INTS * sizeof *mine);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; mine && i < INTS; i++)
            mine[i] = call + rank * INTS + i;
        MPI_Allgatherv(mine || !is_in_place ? mine : all + places[rank], counts[rank], MPI_INT, all, counts,
                       places, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < others * INTS; i++)
            CHECK(all[i] == call + i, "call %d: element %d is %d", call, i, all[i]);
    }
    free(mine);
    free(all);
    free(places);
    free(counts);
}

static void reals(void) {
    static double values[REALS];
    MPI_Datatype real, row;
    MPI_Type_create_f90_real(15, 307, &real);
    MPI_Type_contiguous(REALS, real, &row);
    MPI_Type_commit(&row);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < REALS; i++)
            values[i] = check_rank() == 0 ? call + i : -1;
        MPI_Bcast(values, 1, row, 0, MPI_COMM_WORLD);
        for (int i = 0; i < REALS; i++)
            CHECK(values[i] == call + i, "call %d: element %d is %f", call, i, values[i]);
    }
    MPI_Type_free(&row);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    gather(0);
    gather(1);
    reals();
    check_ok("collective_empty");
    MPI_Finalize();
    return 0;
}
