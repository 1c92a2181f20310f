/* Flows: several pairs of ranks send at the same time, as fast as they can, to see whether they disturb each other. */
#ifndef POLYCAST_BENCH_FLOW_H
#define POLYCAST_BENCH_FLOW_H

#include <mpi.h>
#include <stdint.h>

#include "order.h"

/* Messages of a flow that are under way at most: a rank that has to wait for its turn on a busy processor leaves no gap
 * on the link, and what waits in queues is little. */
enum { FLOW_UNDER_WAY = 4 };

/* Sends or receives until the time of the order is over. Messages are synchronous, so that a flow ends when it is told
 * to. The buffer has room for FLOW_UNDER_WAY messages. The receiver writes two numbers: the bytes
 * that came within the measured time, and the nanoseconds from the first of these arrivals to the last; zeros where
 * that were less than two messages. */
void flow_run(const struct order *order, struct way way, int rank, MPI_Comm comm, unsigned char *buffer,
              int64_t *values);

#endif
