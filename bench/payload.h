/* The data of a call, and the proof that all of it arrived where it belongs.
 *
 * Every byte of a block is known by its source, its destination, its index and the repetition. What reductions add up are whole numbers
 * that doubles hold exactly, so that the order in which they are added does not matter: those of each rank are the same numbers times a
 * factor of its own, and a contribution that is missing, or counted twice, makes another sum. */
#ifndef POLYCAST_BENCH_PAYLOAD_H
#define POLYCAST_BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call.h"

struct payload {
    unsigned char *send;
    unsigned char *receive; /* what a broadcast gets, too */
    unsigned char *pattern; /* the same random bytes on every rank; each block is another window of it */
    unsigned char *other;   /* what empties the caches; NULL: they stay as they are */
    size_t other_bytes;
};

/* Room for `capacity` bytes. `is_cold`: nothing of it is in a cache when a call begins. Returns false when there is no memory. */
bool payload_open(struct payload *payload, size_t capacity, bool is_cold);
void payload_close(struct payload *payload);

/* Gives this rank what it sends in `repetition`, and where it receives data in which every byte, or number, is wrong. Then empties the
 * caches, if that is wanted. */
void payload_prepare(struct payload *payload, const struct call *call, int64_t repetition);

/* Damages what was received. */
void payload_corrupt(struct payload *payload, const struct call *call);

/* Whether this rank has received the data of `repetition`, all of it. */
bool payload_is_right(const struct payload *payload, const struct call *call, int64_t repetition);

#endif
