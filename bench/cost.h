/* The processor time of broadcasts, as the kernel counts it for each rank: in the kernel and outside of it. */
#ifndef POLYCAST_BENCH_COST_H
#define POLYCAST_BENCH_COST_H

#include <mpi.h>
#include <stdbool.h>

/* The argument that asks for it: `cost BYTES CALLS`. */
#define COST_ARGUMENT "cost"

/* Makes CALLS broadcasts of BYTES from rank 0 in a row, after two that do not count. Rank 0 writes
 *
 *     elapsed NS                       of its own calls
 *     cost RANK OUTSIDE-NS KERNEL-NS   one per rank
 *
 * What a rank does while it waits counts, too. Returns false with a sentence in `error`, on all ranks alike. */
bool cost_measure(MPI_Comm ranks, const char *bytes, const char *calls, char *error, int error_size);

#endif
