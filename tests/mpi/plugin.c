/* What a Python extension module is to bcast_dlopen: the object that is linked to libmpi. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

/* Returns 0 when all is well; a wrong byte ends the job. */
int plugin_main(int *argc, char ***argv) {
    enum { BYTES = 30000 };
    MPI_Init(argc, argv);
    unsigned char *message = check_allocate(BYTES);
    for (int root = 0; root < check_size(); root++)
        for (int i = 0; i < 50; i++) {
            uint64_t seed = (uint64_t)(root * 50 + i);
            size_t bytes = (size_t)(i * 601) % BYTES;
            memset(message, CHECK_UNWRITTEN, bytes);
            if (check_rank() == root)
                check_fill(message, bytes, seed);
            MPI_Bcast(message, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
            check_pattern(message, bytes, seed, "in the plugin");
        }
    free(message);
    check_ok("bcast_dlopen");
    return MPI_Finalize();
}
