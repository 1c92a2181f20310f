/* vote.c: whether all ranks of the job can be served. */
#ifndef POLYCAST_VOTE_H
#define POLYCAST_VOTE_H

#include <stdint.h>

/* What this rank can do. */
enum standing {
    STANDING_OFF,     /* POLYCAST=off */
    STANDING_NO_DOOR, /* it does not load, or refuses */
    STANDING_READY,
};

struct verdict {
    int is_served;     /* the same on all ranks */
    char warning[256]; /* what this rank is to say; empty on most ranks, and where all agree to be off */
    const char *why;   /* not served: in a few words, on all ranks */
};

/* The smallest of each number on all ranks of MPI_COMM_WORLD, by MPI_Allreduce; 0, or an error. */
typedef int least_function(const int64_t *mine, int64_t *all, int count);

/* Asks all ranks of MPI_COMM_WORLD. Collective, after MPI_Init: one MPI_Allreduce of 64 bytes. `problem`: why there is no
 * door. */
struct verdict vote(int rank, int size, least_function *least, enum standing standing,
                    uint64_t build_identity, const char *problem);

#endif
