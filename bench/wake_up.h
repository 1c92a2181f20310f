/* How far apart ranks wake up that were told the same time. Where ranks share cores, the last one has its turn when the
 * first ones have begun to wait; a broadcast that began meanwhile would be measured with somebody missing. */
#ifndef POLYCAST_BENCH_WAKE_UP_H
#define POLYCAST_BENCH_WAKE_UP_H

#include "common_clock.h"

/* The advance that receivers never need less than, and never get more than. */
#define LEAST_ADVANCE_NS (500 * 1000)
#define MAX_ADVANCE_NS (100 * 1000 * 1000)

/* On rank 0: how late the last rank is in nine of ten common deadlines, within the limits above. Ranks that are awake
 * wait in a broadcast of the stock MPI for the others, as they do later. Collective over the clock's communicator. It takes
 * 0.8 s; asked again for as many ranks, it says the same. */
int64_t wake_up_spread_ns(const struct common_clock *clock);

#endif
