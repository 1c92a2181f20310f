/* A program of the sessions model, which has no MPI_COMM_WORLD: its broadcasts are left to the library. */
#include <mpi.h>
#include <stdio.h>

int main(void) {
#if MPI_VERSION >= 4
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    int rank, data[5000];
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "polycast-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < 5000; i++)
        data[i] = rank == 1 ? 3 * i : -1;
    MPI_Bcast(data, 5000, MPI_INT, 1, comm);
    for (int i = 0; i < 5000; i++) {
        if (data[i] != 3 * i) {
            printf("FAIL rank %d: element %d is %d\n", rank, i, data[i]);
            return 1;
        }
    }
    if (rank == 0)
        printf("OK bcast_sessions\n");
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
#else
    printf("FAIL this library has no sessions\n");
#endif
    return 0;
}
