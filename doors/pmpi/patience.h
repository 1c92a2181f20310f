/* patience.c: a rank that waits long in MPI_Init says so. */
#ifndef POLYCAST_PATIENCE_H
#define POLYCAST_PATIENCE_H

/* What a rank that has waited for long tells. */
struct waiting {
    int rank, size;
    const char *for_whom; /* "has waited 20 s in MPI_Init for " … */
    const char *remedy;   /* what to look at, and how to go on without polycast; whole sentences */
};

/* From here to patience_ends this process waits for other ranks. Once at a time; `waiting` stays. Where nothing can watch the wait, nothing is
 * said. */
void patience_begins(const struct waiting *waiting);
void patience_ends(void);

#endif
