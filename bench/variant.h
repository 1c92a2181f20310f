/* The variants of a broadcast that are compared: each has its communicator, on which MPI_Bcast is called as
 * any program calls it. What serves the call was fixed when the communicator was made. */
#ifndef POLYCAST_BENCH_VARIANT_H
#define POLYCAST_BENCH_VARIANT_H

#include <mpi.h>
#include <stdbool.h>

/* Duplicates MPI_COMM_WORLD into `communicator` with `variant` ("stock", "polycast" for the choice by table,
 * or an algorithm) behind its broadcasts. Collective. Returns false with a sentence in `error`, on all ranks
 * alike. */
bool variant_open(const char *variant, MPI_Comm *communicator, char *error, int error_size);

#endif
