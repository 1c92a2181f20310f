#define _GNU_SOURCE
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct place {
    char host[64];
    int cores;
};

int place_write(MPI_Comm control, const int *kernel) {
    int rank, ranks;
    MPI_Comm_rank(control, &rank);
    MPI_Comm_size(control, &ranks);
    /* Not MPI_Get_processor_name: launchers may lend it the name of the machine they were started on. */
    struct place own = {.cores = (int)sysconf(_SC_NPROCESSORS_ONLN)};
    gethostname(own.host, sizeof own.host - 1);
    struct place *places = calloc((size_t)ranks, sizeof *places);
    int *ranks_under = calloc((size_t)ranks, sizeof *ranks_under);
    if (!places || !ranks_under)
        MPI_Abort(control, 1);
    MPI_Allgather(&own, sizeof own, MPI_BYTE, places, sizeof own, MPI_BYTE, control);
    int most_per_core = 1;
    for (int r = 0; r < ranks; r++) {
        const int cores = places[kernel[r]].cores > 0 ? places[kernel[r]].cores : 1;
        const int per_core = (++ranks_under[kernel[r]] + cores - 1) / cores;
        most_per_core = per_core > most_per_core ? per_core : most_per_core;
        if (rank == 0)
            printf("rank %d host %s kernel %d cores %d\n", r, places[r].host, kernel[r], places[r].cores);
    }
    free(ranks_under);
    free(places);
    return most_per_core;
}
