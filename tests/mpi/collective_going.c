/* A delete callback that makes collective calls on the communicator that is going; and then communicators of other ranks, sizes and orders,
 * which may have its handle.
 *
 * Usage: collective_going [pmpi]      pmpi: ends them as Open MPI's Fortran does */
#include "check.h"

enum { COMMUNICATORS = 12, CALLS = 300, CALLS_OF_CALLBACK = 3, INTS = 1000 };

static int callbacks;

static int at_end(MPI_Comm comm, int keyval, void *attribute, void *extra) {
    int one = 1, sum = 0, size;
    (void)keyval, (void)attribute, (void)extra;
    MPI_Comm_size(comm, &size);
    for (int call = 0; call < CALLS_OF_CALLBACK; call++) {
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
        CHECK(sum == size, "%d ranks, %d of them said so", size, sum);
    }
    callbacks++;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int rank = check_rank(), last = check_size() - 1;
    int (*const free_it)(MPI_Comm *) = argc > 1 ? PMPI_Comm_free : MPI_Comm_free;
    int (*const disconnect)(MPI_Comm *) = argc > 1 ? PMPI_Comm_disconnect : MPI_Comm_disconnect;
    static int data[INTS];
    int keyval;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keyval, NULL);
    for (int number = 0; number < COMMUNICATORS; number++) {
        MPI_Comm comm;
        int mine, size;
        MPI_Comm_split(MPI_COMM_WORLD, number % 3 == 1 && rank == last, number % 2 ? -rank : rank, &comm);
        MPI_Comm_set_attr(comm, keyval, NULL);
        MPI_Comm_rank(comm, &mine);
        MPI_Comm_size(comm, &size);
        for (int call = 0; call < CALLS; call++) {
            for (int i = 0; i < INTS; i++)
                data[i] = mine == call % size ? number * INTS + call + i : -1;
            MPI_Bcast(data, INTS, MPI_INT, call % size, comm);
            for (int i = 0; i < INTS; i++)
                CHECK(data[i] == number * INTS + call + i, "communicator %d, call %d: %d", number, call,
                      data[i]);
        }
        if (number % 4 == 3)
            disconnect(&comm);
        else
            free_it(&comm);
    }
    CHECK(callbacks == COMMUNICATORS, "%d callbacks", callbacks);
    MPI_Comm_free_keyval(&keyval);
    check_ok("collective_going");
    MPI_Finalize();
    return 0;
}
