/* What passes between two ranks while the others sleep: streams and round trips, by the MPI calls that any program
 * makes. */
#ifndef POLYCAST_BENCH_PAIR_H
#define POLYCAST_BENCH_PAIR_H

#include <mpi.h>
#include <stdint.h>

#include "order.h"

/* A stream: messages one after the other, one way.
 *
 *     sender    warm-up | batch | batch | … | batch |        ack
 *               stamp: 0       1       2            samples
 *
 * Both sides write the time of each batch, `samples` numbers, by their own clocks. The warm-up empties what an idle
 * network gives away (full token buckets, empty buffers); the acknowledgement comes after the last stamp. */
void pair_stream(const struct order *order, int rank, MPI_Comm comm, unsigned char *buffer, int64_t *values);

/* Round trips, Nupairoj 1998, algorithms 2.3.2 and 2.3.3.
 *
 *     FROM    pause | send | dummy computation | receive |
 *     TO                  receive, send
 *
 * FROM writes, for each, how long the send took, how long the receive took, and how long both with the dummy
 * computation: 3 × `samples` numbers. The first round trip is not measured. */
void pair_pingpong(const struct order *order, int rank, MPI_Comm comm, unsigned char *buffer,
                   int64_t *values);

#endif
