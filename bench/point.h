/* All measurements of one size: warm-up, blocks until enough is known or the time is up, results on stdout.
 */
#ifndef POLYCAST_BENCH_POINT_H
#define POLYCAST_BENCH_POINT_H

#include "block.h"

/* Collective. Rank 0 writes what was measured, block by block. */
void point_measure(struct bench *bench, int bytes);

#endif
