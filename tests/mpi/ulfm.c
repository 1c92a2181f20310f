/* Stands in for an MPI with ULFM, behind polycast: a file says to all ranks that MPIX_Comm_revoke was called (for any
 * communicator), and then MPI_Bcast fails. REVOKED_FILE names it. Who asks of a communicator that was freed ends the job. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ERR_REVOKED = MPI_ERR_COMM };

int MPIX_Comm_revoke(MPI_Comm comm);
int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag);

int MPIX_Comm_revoke(MPI_Comm comm) {
    (void)comm;
    int file = open(getenv("REVOKED_FILE"), O_CREAT | O_WRONLY, 0600);
    close(file);
    return MPI_SUCCESS;
}

static MPI_Comm freed = MPI_COMM_NULL;

int MPI_Comm_free(MPI_Comm *comm) {
    freed = *comm;
    return PMPI_Comm_free(comm);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy) {
    const int result = PMPI_Comm_dup(comm, copy);
    freed = *copy == freed ? MPI_COMM_NULL : freed;
    return result;
}

int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag) {
    if (freed != MPI_COMM_NULL && comm == freed) {
        fputs("MPIX_Comm_is_revoked is asked of a communicator that was freed\n", stderr);
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    *flag = access(getenv("REVOKED_FILE"), F_OK) == 0;
    return MPI_SUCCESS;
}

int PMPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int is_revoked;
    MPIX_Comm_is_revoked(comm, &is_revoked);
    if (is_revoked)
        return ERR_REVOKED;
    int (*next)(void *, int, MPI_Datatype, int, MPI_Comm);
    *(void **)&next = dlsym(RTLD_NEXT, "PMPI_Bcast");
    return next(buffer, count, type, root, comm);
}
