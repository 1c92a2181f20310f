/* One call of a collective: what each rank gives and gets, and the call itself.
 *
 * A size is that of the largest buffer of a rank: the message of a broadcast or a reduction, all blocks together of the others.
 * Blocks are rounded up, so that all have the same size: a rank's (scatter, gather, allgather), that of a pair of ranks (all-to-all), whole
 * elements (reductions). Only allgatherv's differ: of two neighbours the first has half a block and the second one and a half. */
#ifndef POLYCAST_BENCH_CALL_H
#define POLYCAST_BENCH_CALL_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum collective { BCAST, SCATTER, GATHER, ALLGATHER, ALLGATHERV, ALLTOALL, BARRIER, REDUCE, ALLREDUCE };

struct call {
    enum collective collective;
    int bytes; /* as it was asked for */
    int root;
    int rank;
    int ranks;
    int *counts;  /* of each rank's block, in bytes */
    int *offsets; /* where it begins */
};

/* As in the MPI function's name. Returns false if there is no such collective. */
bool collective_read(const char *name, enum collective *collective);

/* As polycast calls what serves it: its allgather also serves allgatherv. */
const char *collective_name(enum collective collective);

/* The variable that says what that is. */
const char *collective_variable(enum collective collective);

/* Whether one rank has what all others wait for. */
bool collective_has_source(enum collective collective);

/* Whether only the root ends with data. */
bool collective_ends_at_root(enum collective collective);

/* A call by `rank` of `ranks`; the root can be changed later. Returns false when there is no memory. */
bool call_open(struct call *call, enum collective collective, int bytes, int rank, int ranks);
void call_close(struct call *call);

/* Bytes by which polycast chooses: of the message, of the largest block, or of the block of a pair of ranks. */
int call_block(const struct call *call);

/* Bytes that the largest buffer of any rank has. */
size_t call_room(const struct call *call);

/* Makes it. A broadcast uses `receive` only. */
void call_run(const struct call *call, const unsigned char *send, unsigned char *receive, MPI_Comm comm);

#endif
