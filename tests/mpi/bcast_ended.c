/* Ten broadcasts; then rank 0 alone calls one more, which never returns, and the other tells both to end. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int rank, value = 0, process[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    process[rank] = (int)getpid();
    for (int root = 0; root < 2; root++) {
        MPI_Bcast(&process[root], 1, MPI_INT, root, MPI_COMM_WORLD);
    }
    for (int i = 0; i < 8; i++) {
        MPI_Bcast(&value, 1, MPI_INT, i % 2, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
        MPI_Bcast(&value, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    /* However long the other one waited for a processor, it is about to call. */
    MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sleep(1);
    kill((pid_t)process[0], SIGTERM);
    kill((pid_t)process[1], SIGTERM);
    sleep(60);
    MPI_Finalize();
    return 0;
}
