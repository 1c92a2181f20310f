/* Where the ranks run. */
#ifndef POLYCAST_BENCH_PLACE_H
#define POLYCAST_BENCH_PLACE_H

#include <mpi.h>
#include <stdbool.h>

/* Rank 0 writes one line `rank R host NAME kernel K cores C` per rank, where L is the first rank that reads
 * the same clock, that is, runs under the same kernel; `leader` gives it. Returns, on all ranks, whether more
 * ranks than online cores are under one kernel. Collective. */
bool place_write(MPI_Comm control, const int *kernel);

#endif
