/* Ranks that measure between each other what they are told to: `polycast measure` and `polycast topology discover`
 * write orders (order.h) to rank 0's standard input, one at a time, and read its answers.
 *
 *     tool ── order ──▶ rank 0 ── order ──▶ the ranks that it names; all others sleep
 *     tool ◀─ answer ── rank 0 ◀─ values ── of these
 *
 * On stdout, flushed line by line:
 *
 *     polycast-measure 1                    the version of this format
 *     mpi LIBRARY VERSION
 *     rank R host NAME kernel K cores C     one per rank
 *     ready
 *     answer V V V …                        one per order: of a stream, the sender's samples, then the receiver's; of
 *                                           a ping-pong, three numbers per round trip; of flows, two per flow
 *     error SENTENCE
 *     end                                   after the order `end`, and when standard input ends
 */
#ifndef RANK_SERVER_H
#define RANK_SERVER_H

#include <mpi.h>
#include <stdbool.h>

/* The only argument with which the measuring program serves orders. */
#define RANK_SERVER_ARGUMENT "orders"

/* Obeys until the end. Collective over `comm`. Returns false after an order that could not be read, on rank 0. */
bool rank_server_run(MPI_Comm comm);

#endif
