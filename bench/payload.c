#include "payload.h"

#include <stdlib.h>
#include <string.h>

/* A prime, so that successive windows do not fall into step with block sizes. */
enum { WINDOWS = 4099 };

bool payload_open(struct payload *payload, size_t capacity) {
    payload->capacity = capacity;
    payload->buffer = malloc(capacity + 1);
    payload->pattern = malloc(capacity + WINDOWS);
    if (!payload->buffer || !payload->pattern) {
        payload_close(payload);
        return false;
    }
    /* xorshift64: all ranks draw the same bytes. */
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < capacity + WINDOWS; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        payload->pattern[i] = (unsigned char)(state >> 32);
    }
    return true;
}

void payload_close(struct payload *payload) {
    free(payload->buffer);
    free(payload->pattern);
    payload->buffer = payload->pattern = NULL;
}

static const unsigned char *window(const struct payload *payload, int64_t repetition) {
    return payload->pattern + repetition % WINDOWS;
}

void payload_prepare(struct payload *payload, int64_t repetition, size_t bytes, bool is_root) {
    const unsigned char *data = window(payload, repetition);
    if (is_root) {
        memcpy(payload->buffer, data, bytes);
        return;
    }
    /* The complement: a byte that was not delivered cannot be right by chance, at any size. */
    for (size_t i = 0; i < bytes; i++)
        payload->buffer[i] = (unsigned char)~data[i];
}

bool payload_is_right(const struct payload *payload, int64_t repetition, size_t bytes) {
    return memcmp(payload->buffer, window(payload, repetition), bytes) == 0;
}
