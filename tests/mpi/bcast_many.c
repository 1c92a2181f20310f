/* Hundreds of live communicators, with broadcasts on all of them: the program gets every communicator that it asks for.
 *
 * Usage: bcast_many [COMMUNICATORS] */
#include "check.h"

#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 600, bytes = 5000;
    MPI_Comm *comms = check_allocate(count * sizeof *comms);
    unsigned char *data = check_allocate(bytes);
    for (int i = 0; i < count; i++)
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    for (int i = 0; i < 2 * count; i++) {
        int root = i % check_size();
        for (int k = 0; k < bytes; k++)
            data[k] = check_rank() == root ? (unsigned char)(i * 31 + k) : 0;
        MPI_Bcast(data, bytes, MPI_BYTE, root, comms[i % count]);
        for (int k = 0; k < bytes; k++)
            if (data[k] != (unsigned char)(i * 31 + k))
                check_fail("communicator %d: byte %d is wrong", i % count, k);
    }
    for (int i = 0; i < count; i++)
        MPI_Comm_free(&comms[i]);
    check_ok("bcast_many");
    MPI_Finalize();
}
