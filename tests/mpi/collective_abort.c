/* The rank that is named calls MPI_Abort, after some broadcasts of all ranks, and while the others wait for it. */
#include "check.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 1, "expected the number of a rank");
    static char message[4096];
    for (int call = 0; call < 20; call++)
        check_broadcast(MPI_COMM_WORLD, message, sizeof message, 0, (uint64_t)call, "before the end");
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == atoi(argv[1]))
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
