/* Waiting that leaves the processor to others: MPI's own waiting spins, and in a lab all ranks share a few cores. */
#ifndef POLYCAST_BENCH_NAP_H
#define POLYCAST_BENCH_NAP_H

#include <mpi.h>
#include <stdint.h>

/* Sleeps until a message from `source` with `tag` is there, looking after `first_ns` and then less and less often,
 * at last every `longest_ns`. */
void nap_until_message(int source, int tag, MPI_Comm comm, int64_t first_ns, int64_t longest_ns);

/* Sleeps until `request` is complete, looking every `nap_ns`. `status` may be MPI_STATUS_IGNORE. */
void nap_until_complete(MPI_Request *request, MPI_Status *status, int64_t nap_ns);

#endif
