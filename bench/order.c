#include "order.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_WORDS = 4 + 2 * MAX_FLOWS };

static const int64_t LONGEST_NS = 3600 * (int64_t)1000000000;

/* The numbers behind the first word; how many, or -1. */
static int numbers_of(const char *line, int64_t *numbers) {
    int count = 0;
    const char *rest = line + strcspn(line, " \n");
    for (;;) {
        rest += strspn(rest, " \n");
        if (*rest == '\0')
            return count;
        char *end;
        errno = 0;
        const long long number = strtoll(rest, &end, 10);
        if (errno != 0 || end == rest || number < 0 || count == MAX_WORDS)
            return -1;
        numbers[count++] = number;
        rest = end;
    }
}

static bool is_named(const char *line, const char *name) {
    const size_t length = strlen(name);
    return strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == '\n' || !line[length]);
}

/* Ranks of this job; in one order every rank has one role. */
static bool read_ways(struct order *order, const int64_t *numbers, int count, int ranks) {
    for (int i = 0; i < count; i++) {
        if (numbers[i] >= ranks)
            return false;
        for (int j = 0; j < i; j++) {
            if (numbers[j] == numbers[i])
                return false;
        }
    }
    order->way_count = count / 2;
    for (int i = 0; i < order->way_count; i++)
        order->ways[i] = (struct way){(int32_t)numbers[2 * i], (int32_t)numbers[2 * i + 1]};
    return true;
}

static bool within(int64_t number, int64_t low, int64_t high) {
    return number >= low && number <= high;
}

const char *order_read(struct order *order, const char *line, int ranks) {
    int64_t n[MAX_WORDS];
    const int count = numbers_of(line, n);
    *order = (struct order){.kind = ORDER_END};
    if (is_named(line, "end") && count == 0)
        return NULL;
    if (is_named(line, "stream") && count == 6) {
        if (!read_ways(order, n, 2, ranks) || !within(n[2], 0, INT_MAX) || !within(n[3], 0, INT_MAX) ||
            !within(n[4], 1, INT_MAX) || !within(n[5], 1, MAX_SAMPLES))
            return "stream FROM TO BYTES WARM-UP BATCH SAMPLES";
        order->kind = ORDER_STREAM;
        order->bytes = (int32_t)n[2];
        order->warm_up = (int32_t)n[3];
        order->batch = (int32_t)n[4];
        order->samples = (int32_t)n[5];
        return NULL;
    }
    if (is_named(line, "pingpong") && count == 6) {
        if (!read_ways(order, n, 2, ranks) || !within(n[2], 0, INT_MAX) || !within(n[3], 0, LONGEST_NS) ||
            !within(n[4], 0, LONGEST_NS) || !within(n[5], 1, MAX_SAMPLES))
            return "pingpong FROM TO BYTES PAUSE-NS DUMMY-NS SAMPLES";
        order->kind = ORDER_PINGPONG;
        order->bytes = (int32_t)n[2];
        order->pause_ns = n[3];
        order->dummy_ns = n[4];
        order->samples = (int32_t)n[5];
        return NULL;
    }
    if (is_named(line, "flows") && count >= 5 && count % 2 == 1) {
        if (!within(n[0], 1, INT_MAX) || !within(n[1], 0, LONGEST_NS) || !within(n[2], 1, LONGEST_NS) ||
            !read_ways(order, n + 3, count - 3, ranks))
            return "flows BYTES WARM-UP-NS TIME-NS FROM TO [FROM TO …]";
        order->kind = ORDER_FLOWS;
        order->bytes = (int32_t)n[0];
        order->warm_up_ns = n[1];
        order->time_ns = n[2];
        return NULL;
    }
    return "stream, pingpong, flows or end with their numbers";
}
