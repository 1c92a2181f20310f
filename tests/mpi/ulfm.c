/* Stands in for an MPI with ULFM, behind polycast: a file says to all ranks that MPIX_Comm_revoke was called (for any
 * communicator), and then MPI_Bcast fails. REVOKED_FILE names it. */
#define _GNU_SOURCE
#include <mpi.h>

#include <dlfcn.h>
#include <fcntl.h>
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

int MPIX_Comm_is_revoked(MPI_Comm comm, int *flag) {
    (void)comm;
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
