/* Several programs of one job, each with collectives of its own part of the ranks: the argument is the part. Those of part 9 make none. */
#include "check.h"

#include <stdlib.h>

enum { CALLS = 100, MOST = 20000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int part = argc > 1 ? atoi(argv[1]) : 0;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, part, check_rank(), &comm);
    int size, rank, *data = check_allocate(MOST * sizeof *data), largest;
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    for (int call = 0; call < (part == 9 ? 0 : CALLS / (1 + part)); call++) {
        const int count = 1 + call * 61 % MOST;
        for (int i = 0; i < count; i++)
            data[i] = rank == call % size ? i + call : -1;
        MPI_Bcast(data, count, MPI_INT, call % size, comm);
        CHECK(data[count - 1] == count - 1 + call, "part %d, call %d: %d", part, call, data[count - 1]);
        MPI_Allreduce(data, &largest, 1, MPI_INT, MPI_MAX, comm);
        CHECK(largest == call, "part %d, call %d: the largest is %d", part, call, largest);
    }
    free(data);
    MPI_Comm_free(&comm);
    check_ok("collective_mpmd");
    MPI_Finalize();
}
