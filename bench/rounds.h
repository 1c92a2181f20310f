/* Times without a common clock, Nupairoj 1998, §3.3: means over calls in a row, which come in rounds.
 *
 * METHOD_LOOP, algorithm 3.3.1, is what many programs do to measure a broadcast, and misleads: calls overlap, and each rank's
 * time is the interval between two calls rather than how long one takes. A chain, which takes long and starts often, looks best.
 *
 *     every rank    call | call | call | …      END: mean
 *
 * METHOD_RESPONDER, algorithm 3.3.2, is exact: the root makes the next call when one receiver, the responder, has answered.
 *
 *     root          call | wait   answer| call | wait …    median from call to answer, less the answer's way: the time until the responder had it
 *     responder     call      | (dummy) | call      | …
 *     others        call   |     call                       are there before the root
 *
 * The first pass asks everybody, with a dummy computation in the responder that is longer than any call, so that all others are
 * through. Who takes longest is critical. The second pass asks the critical ones without it: the longest of their times is that of the
 * call. END is the time of each rank, none longer than that. */
#ifndef POLYCAST_BENCH_ROUNDS_H
#define POLYCAST_BENCH_ROUNDS_H

#include <stdint.h>

#include "block.h"

/* One round of `calls` calls (of each responder), by all ranks. `estimate_ns`: how long one took. On rank 0 `times_ns` gets the time
 * of each rank. Returns how many ranks have wrong data after the last call. */
int rounds_run(struct bench *bench, struct call *call, int variant, int64_t repetition, int calls,
               int64_t estimate_ns, int64_t *times_ns);

#endif
