/* What decides that enough was measured. */
#ifndef POLYCAST_BENCH_STATISTICS_H
#define POLYCAST_BENCH_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

/* A growing list of nanoseconds. */
struct samples {
    int64_t *values;
    int count;
    int capacity;
};

/* Returns false when there is no memory. */
bool samples_add(struct samples *samples, int64_t value);
void samples_clear(struct samples *samples);

/* The value that the fraction `q` of the samples does not exceed. Sorts. Needs at least one sample. */
int64_t samples_quantile(struct samples *samples, double q);

/* Whether the 95 % interval of the median is narrower than `fraction` of the median. Sorts. */
bool samples_are_enough(struct samples *samples, double fraction);

#endif
