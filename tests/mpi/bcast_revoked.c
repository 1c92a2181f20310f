/* Rank 0 revokes a communicator (ULFM) instead of broadcasting; the others, which wait in the broadcast, get an error. The MPI
 * must have MPIX_Comm_revoke; where it has none, ulfm.c stands in.
 *
 * With the argument `freed`: a communicator is freed, by its second rank later, while the others use one without that rank for the first time. */
#include "check.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static int data[20000];

static void freed(void) {
    const int is_late = check_rank() == 1;
    for (int round = 0; round < 5; round++) {
        MPI_Comm comm, others, copy;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_split(MPI_COMM_WORLD, is_late, 0, &others);
        MPI_Comm_dup(others, &copy);
        check_broadcast(comm, data, sizeof data, 0, 7, "before it is freed");
        if (is_late) {
            usleep(50000);
        }
        MPI_Comm_free(&comm);
        check_broadcast(copy, data, sizeof data, 0, 8, "on another one");
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Comm_free(&others);
        MPI_Comm_free(&copy);
    }
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    if (argc > 1 && strcmp(argv[1], "freed") == 0) {
        freed();
        check_ok("bcast_revoked");
        MPI_Finalize();
        return 0;
    }
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
