/* Rank 0 revokes a communicator (ULFM) instead of broadcasting; the others, which wait in the broadcast, get an error. The MPI
 * must have MPIX_Comm_revoke; where it has none, ulfm.c stands in. */
#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static int data[20000];
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    int (*revoke)(MPI_Comm);
    *(void **)&revoke = dlsym(RTLD_DEFAULT, "MPIX_Comm_revoke");
    CHECK(revoke, "this MPI has no MPIX_Comm_revoke");
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    CHECK(MPI_Bcast(data, 20000, MPI_INT, 0, comm) == MPI_SUCCESS, "the first broadcast failed");
    MPI_Barrier(MPI_COMM_WORLD);
    if (check_rank() == 0) {
        sleep(1); /* so that the others wait already, mostly */
        revoke(comm);
    }
    /* Rank 0 finds it revoked before it begins, the others while they wait. */
    CHECK(MPI_Bcast(data, 20000, MPI_INT, 0, comm) != MPI_SUCCESS, "a revoked communicator broadcast");
    check_ok("bcast_revoked");
    MPI_Finalize();
}
