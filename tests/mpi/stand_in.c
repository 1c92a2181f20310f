/* What a generated routine is linked with to be tested on one machine: its calls of some MPI functions come here, by macros
 * such as -DPMPI_Irecv=stand_in_irecv.
 *
 * PRETENDED_HOSTS=a,b,c names the hosts that the ranks of MPI_COMM_WORLD are to find themselves on. At its end rank 0
 * prints `ROUTINE messages=N left=N`: its own sends and receives, and broadcasts that it left to the library. */
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int stand_in_name(char *name, int *length);
int stand_in_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int stand_in_irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   MPI_Request *request);
int stand_in_isend(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                   MPI_Request *request);

static atomic_long messages, left;
static int rank;

static __attribute__((destructor)) void report(void) {
    if (rank == 0)
        printf("ROUTINE messages=%ld left=%ld\n", messages, left);
}

int stand_in_name(char *name, int *length) {
    const char *host = getenv("PRETENDED_HOSTS");
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!host)
        return PMPI_Get_processor_name(name, length);
    for (int before = rank; before > 0 && *host; before--)
        host += strcspn(host, ",") + (strchr(host, ',') != NULL);
    *length = (int)strcspn(host, ",");
    memcpy(name, host, (size_t)*length);
    name[*length] = '\0';
    return MPI_SUCCESS;
}

int stand_in_bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    left++;
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int stand_in_irecv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    messages++;
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}

int stand_in_isend(const void *buffer, int count, MPI_Datatype type, int target, int tag, MPI_Comm comm,
                   MPI_Request *request) {
    messages++;
    return PMPI_Isend(buffer, count, type, target, tag, comm, request);
}
