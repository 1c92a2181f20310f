/* Calls that one rank makes alone, and that its MPI refuses at once: a root beyond the ranks, no operation, a negative count, no type. Then all ranks go on, and each call is to be served by the same on all of them, also where that changes with the number of calls. */
#include "check.h"

enum { CALLS = 600, REFUSED = 3 };

static void refuse(MPI_Comm comm) {
    int data = 0, sum, ranks;
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < REFUSED; i++) {
        CHECK(MPI_Bcast(&data, 1, MPI_INT, ranks + i, comm) != MPI_SUCCESS, "a root beyond the ranks");
        CHECK(MPI_Allreduce(&data, &sum, 1, MPI_INT, MPI_OP_NULL, comm) != MPI_SUCCESS, "no operation");
        CHECK(MPI_Bcast(&data, -1, MPI_INT, 0, comm) != MPI_SUCCESS, "a negative count");
        CHECK(MPI_Bcast(&data, 1, MPI_DATATYPE_NULL, 0, comm) != MPI_SUCCESS, "no type");
    }
}

/* `alone`: before the call of this number. */
static void use(int alone) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int call = 0; call < CALLS; call++) {
        if (call == alone && check_rank() == check_size() - 1)
            refuse(comm);
        const int root = call % check_size();
        int data = check_rank() == root ? call : -1, sum = -1;
        MPI_Bcast(&data, 1, MPI_INT, root, comm);
        CHECK(data == call, "broadcast %d: %d", call, data);
        MPI_Allreduce(&call, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == call * check_size(), "sum %d: %d", call, sum);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    use(0);
    use(5);
    use(CALLS / 2);
    check_ok("collective_alone");
    MPI_Finalize();
    return 0;
}
