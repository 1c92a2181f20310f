/* Flows: several pairs of ranks send at the same time, as fast as they can, to see whether they disturb each other. */
#ifndef POLYCAST_BENCH_FLOW_H
#define POLYCAST_BENCH_FLOW_H

#include <mpi.h>
#include <stdint.h>

#include "order.h"

/* Sends or receives until the time of the order is over. Messages are synchronous and two are under way at most, so
 * that what waits in queues is little and a flow ends when it is told to. The receiver writes two numbers: the bytes
 * that came within the measured time, and the nanoseconds from the first of these arrivals to the last; zeros where
 * that were less than two messages. */
void flow_run(const struct order *order, struct way way, int rank, MPI_Comm comm, unsigned char *buffer,
              int64_t *values);

#endif
