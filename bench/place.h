/* Where the ranks run. */
#ifndef POLYCAST_BENCH_PLACE_H
#define POLYCAST_BENCH_PLACE_H

#include <mpi.h>

/* Rank 0 writes one line `rank R host NAME kernel K cores C` per rank, where K is the first rank under the
 * same kernel, as `kernel` gives it. Returns, on all ranks, how many ranks share a core where it is worst,
 * rounded up. Collective. */
int place_write(MPI_Comm control, const int *kernel);

#endif
