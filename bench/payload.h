/* The bytes that are broadcast, and the proof that they arrived. */
#ifndef POLYCAST_BENCH_PAYLOAD_H
#define POLYCAST_BENCH_PAYLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct payload {
    unsigned char *buffer; /* what MPI_Bcast gets */
    unsigned char
        *pattern; /* the same random bytes on every rank; each repetition broadcasts another window */
    size_t capacity;
};

/* Room for `capacity` bytes. Returns false when there is no memory. */
bool payload_open(struct payload *payload, size_t capacity);
void payload_close(struct payload *payload);

/* Gives the root the data of `repetition`, and everybody else a buffer in which every single byte is wrong.
 */
void payload_prepare(struct payload *payload, int64_t repetition, size_t bytes, bool is_root);

/* Whether the buffer holds the data of `repetition`, every byte of it. */
bool payload_is_right(const struct payload *payload, int64_t repetition, size_t bytes);

#endif
