/* narrow.c: arrays of counts and places for an MPI that has them in int only. */
#ifndef POLYCAST_NARROW_H
#define POLYCAST_NARROW_H

#include "library.h"

/* Replaces arrays of 64 bits, one number for each rank that sends on `comm`, by ones of ints: until this thread's next call of it, or, if they are
 * read after `function` has returned, for ever. 0: not all fit, or there is no memory. */
int narrow_blocks(const struct mpi_library *library, const char *function, const void **counts,
                  const void **places, handle comm);

#endif
