/* Broadcasts of 4,096 bytes that take a known time: rank r returns r times 50 ms after its data has come.
 * Preloaded into `polycast bench`. */
#include <mpi.h>
#include <time.h>

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    const int result = PMPI_Bcast(buffer, count, datatype, root, comm);
    int bytes, rank;
    PMPI_Type_size(datatype, &bytes);
    PMPI_Comm_rank(comm, &rank);
    if (count * bytes == 4096) {
        const struct timespec late = {0, rank * 50000000L};
        nanosleep(&late, 0);
    }
    return result;
}
