/* MPI_Bcast_c, which mpi4py calls, and which an MPI library may not have: polycast has it. Ten calls, each for 4 bytes, on a
 * communicator of one rank. */
#include "check.h"

#include <dlfcn.h>

typedef int bcast_c_function(void *buffer, int64_t count, MPI_Datatype type, int root, MPI_Comm comm);

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    bcast_c_function *bcast_c = (bcast_c_function *)dlsym(RTLD_DEFAULT, "MPI_Bcast_c");
    for (int call = 0, data = 1; bcast_c && call < 10; call++) {
        int error = bcast_c(&data, 1, MPI_INT, 0, MPI_COMM_SELF);
        CHECK(error == MPI_SUCCESS && data == 1, "call %d: error %d, data %d", call, error, data);
    }
    check_ok("bcast_count");
    MPI_Finalize();
}
