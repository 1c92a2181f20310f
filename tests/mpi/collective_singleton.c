/* What a launcher does that does not fit the MPI: processes that are each rank 0 of 1. With `linger FILE` it ends when there is such a file. */
#include "check.h"

#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(check_size() == 1, "%d ranks", check_size());
    double one = 1, sum = 0;
    int data[3] = {1, 2, 3}, all[3];
    for (int call = 0; call < 100; call++) {
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Bcast(data, 3, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Alltoall(data, 3, MPI_INT, all, 3, MPI_INT, MPI_COMM_SELF);
        CHECK(sum == 1 && all[2] == 3, "call %d: %g and %d", call, sum, all[2]);
    }
    while (argc > 2 && strcmp(argv[1], "linger") == 0 && access(argv[2], F_OK))
        usleep(10000);
    check_ok("collective_singleton");
    MPI_Finalize();
}
