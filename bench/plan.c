#include "plan.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where nobody knows the rate; slow, because to wait too long costs time only. */
#define SLOWEST_USUAL_LINK (100 * 1000 * 1000)

static bool read_whole(const char *text, int64_t low, int64_t high, int64_t *number) {
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *number = value;
    return errno == 0 && end != text && *end == '\0' && value >= low && value <= high;
}

static bool read_arrival(const char *text, enum arrival *arrival) {
    static const char *const names[] = {"none", "root-first", "root-last", "one-late", "random", "recorded"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *arrival = (enum arrival)i;
            return true;
        }
    }
    return false;
}

static bool read_method(const char *text, enum method *method) {
    static const char *const names[] = {"clock", "loop", "responder"};
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *method = (enum method)i;
            return true;
        }
    }
    return false;
}

/* Takes in one `key=value`. Returns NULL or what was expected. */
static const char *read_setting(struct plan *plan, const char *key, const char *value, int ranks) {
    int64_t number = 0;
    if (strcmp(key, "collective") == 0) {
        if (!collective_read(value, &plan->collective))
            return "bcast, scatter, gather, allgather, allgatherv, alltoall, barrier, reduce or allreduce";
    } else if (strcmp(key, "size") == 0) {
        if (plan->size_count == MAX_SIZES || !read_whole(value, 0, INT_MAX, &number))
            return "at most 256 sizes of 0 to 2147483647 bytes";
        plan->sizes[plan->size_count++] = (int)number;
    } else if (strcmp(key, "variant") == 0) {
        if (plan->variant_count == MAX_VARIANTS || *value == '\0')
            return "at most 32 variants: stock, polycast, an algorithm or blast";
        plan->variants[plan->variant_count++] = value;
    } else if (strcmp(key, "ranks") == 0) {
        if (plan->rank_counts == MAX_RANK_COUNTS || !read_whole(value, 1, ranks, &number))
            return "at most 64 numbers of ranks, none more than this job has";
        plan->ranks[plan->rank_counts++] = (int)number;
    } else if (strcmp(key, "time-ms") == 0) {
        if (!read_whole(value, 1, INT_MAX, &number))
            return "milliseconds of at least 1";
        plan->seconds_per_variant = (double)number / 1e3;
    } else if (strcmp(key, "root") == 0) {
        plan->root_rotates = strcmp(value, "rotate") == 0;
        if (!plan->root_rotates && !read_whole(value, 0, ranks - 1, &number))
            return "rotate or a rank of this job";
        plan->root = (int)number;
    } else if (strcmp(key, "arrival") == 0) {
        if (!read_arrival(value, &plan->arrival))
            return "none, root-first, root-last, one-late, random or recorded";
    } else if (strcmp(key, "arrival-file") == 0) {
        plan->arrival_file = value;
    } else if (strcmp(key, "delay-ns") == 0) {
        if (!read_whole(value, 0, INT64_MAX / 4, &plan->delay_ns))
            return "nanoseconds";
    } else if (strcmp(key, "method") == 0) {
        if (!read_method(value, &plan->method))
            return "clock, loop or responder";
    } else if (strcmp(key, "cold") == 0) {
        if (!read_whole(value, 0, 1, &number))
            return "0 or 1";
        plan->is_cold = number == 1;
    } else if (strcmp(key, "clock") == 0) {
        plan->pingpong_clock = strcmp(value, "pingpong") == 0;
        if (!plan->pingpong_clock && strcmp(value, "auto") != 0)
            return "auto or pingpong";
    } else if (strcmp(key, "interface") == 0) {
        plan->interface = value;
    } else if (strcmp(key, "rate") == 0) {
        if (!read_whole(value, 1000, INT64_MAX, &plan->bits_per_second))
            return "bits per second";
    } else if (strcmp(key, "corrupt") == 0) {
        if (!read_whole(value, 0, ranks - 1, &number))
            return "a rank of this job";
        plan->corrupt_rank = (int)number;
    } else {
        return "collective, size, variant, ranks, time-ms, root, arrival, arrival-file, delay-ns, method, "
               "cold, "
               "clock, interface, "
               "rate or corrupt";
    }
    return NULL;
}

bool plan_read(struct plan *plan, int argc, char **argv, int ranks, char *error, int error_size) {
    *plan = (struct plan){.seconds_per_variant = 1,
                          .delay_ns = DELAY_LIKE_STOCK,
                          .corrupt_rank = NO_RANK,
                          .interface = "",
                          .arrival_file = "",
                          .bits_per_second = SLOWEST_USUAL_LINK,
                          .arrival = ARRIVAL_NONE};
    for (int i = 1; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        char key[16] = "";
        if (equals && equals - argv[i] < (int)sizeof key)
            memcpy(key, argv[i], (size_t)(equals - argv[i]));
        const char *expected = read_setting(plan, key, equals ? equals + 1 : "", ranks);
        if (expected) {
            snprintf(error, (size_t)error_size, "%s: expected %s", argv[i], expected);
            return false;
        }
    }
    if (plan->size_count == 0 || plan->variant_count == 0) {
        snprintf(
            error, (size_t)error_size,
            "expected at least one size=BYTES and one variant=NAME; `polycast bench` starts this program");
        return false;
    }
    if (plan->rank_counts == 0)
        plan->ranks[plan->rank_counts++] = ranks;
    for (int i = 0; i < plan->rank_counts; i++) {
        if (plan->root >= plan->ranks[i]) {
            snprintf(error, (size_t)error_size, "root=%d: expected a rank below %d, the number of ranks",
                     plan->root, plan->ranks[i]);
            return false;
        }
    }
    return true;
}

int64_t plan_silence_ns(const struct plan *plan, int bytes) {
    const double wire_ns = bytes * 8e9 / (double)plan->bits_per_second;
    return 20 * 1000 * 1000 + (int64_t)(3 * wire_ns);
}

/* A well-mixed 64-bit function of its input (the finaliser of SplitMix64): the same draws on every rank. */
static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

int64_t plan_arrival_ns(const struct plan *plan, int64_t delay_ns, int64_t cycle, int rank, int root,
                        int ranks) {
    switch (plan->arrival) {
    case ARRIVAL_NONE:
        return 0;
    case ARRIVAL_ROOT_FIRST:
        return rank == root ? 0 : delay_ns;
    case ARRIVAL_ROOT_LAST:
        return rank == root ? delay_ns : 0;
    case ARRIVAL_ONE_LATE:
        return ranks > 1 && rank == (root + 1 + cycle % (ranks - 1)) % ranks ? delay_ns : 0;
    case ARRIVAL_RANDOM:
        /* By cycle, not by repetition: all variants of a cycle meet the same arrivals. */
        return delay_ns > 0 ? (int64_t)(mixed((uint64_t)cycle << 32 ^ (uint64_t)rank) % (uint64_t)delay_ns)
                            : 0;
    case ARRIVAL_RECORDED:
        return recorded_delay_ns(&plan->recorded, cycle, rank, root);
    }
    return 0;
}

int64_t plan_common_divisor(int64_t a, int64_t b) {
    return b == 0 ? a : plan_common_divisor(b, a % b);
}

int plan_root(const struct plan *plan, int64_t cycle, int ranks) {
    return plan->root_rotates ? (int)(cycle % ranks) : plan->root;
}

int64_t plan_turn(const struct plan *plan, int64_t cycle, int ranks) {
    const int64_t period = ranks / plan_common_divisor(ranks, plan->variant_count) * plan->variant_count;
    return plan->root_rotates ? cycle + cycle / period : cycle;
}
