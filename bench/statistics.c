#include "statistics.h"

#include <stdlib.h>

bool samples_add(struct samples *samples, int64_t value) {
    if (samples->count == samples->capacity) {
        int capacity = samples->capacity ? samples->capacity * 2 : 256;
        int64_t *values = realloc(samples->values, (size_t)capacity * sizeof *values);
        if (!values)
            return false;
        samples->values = values;
        samples->capacity = capacity;
    }
    samples->values[samples->count++] = value;
    return true;
}

void samples_clear(struct samples *samples) {
    free(samples->values);
    *samples = (struct samples){0};
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int64_t samples_quantile(struct samples *samples, double q) {
    qsort(samples->values, (size_t)samples->count, sizeof *samples->values, by_value);
    int index = (int)(q * samples->count);
    return samples->values[index < samples->count ? index : samples->count - 1];
}

bool samples_are_enough(struct samples *samples, double fraction) {
    /* The normal approximation of the binomial distribution is good from here on; `polycast bench` reports
     * the exact interval, here it only decides when to stop. */
    const int fewest = 20;
    if (samples->count < fewest)
        return false;
    int64_t median = samples_quantile(samples, 0.5);
    /* 1.96 standard deviations of a binomial count with p = 1/2 are 0.98 √n; its next whole number, √n
     * rounded up. */
    int half = 1;
    while (half * half < samples->count)
        half++;
    int low = samples->count / 2 - half;
    int high = (samples->count + 1) / 2 + half;
    if (low < 0 || high >= samples->count)
        return false;
    return (double)(samples->values[high] - samples->values[low]) <= fraction * (double)median;
}
