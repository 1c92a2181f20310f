/*
 * What rank 0 leaves in memory for its witness (docs/decisions/0075): the report as it is so far, for each place where it is to go. Written by
 * crates/polycast-runtime/src/report/witness.rs, whose declarations are these.
 */
#ifndef POLYCAST_WITNESS_RECORD_H
#define POLYCAST_WITNESS_RECORD_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    RECORD_VERSION = 0x706c7901, /* another one is another layout */
    DOCUMENTS = 2,               /* what was asked for, and the file beside traces */
    FILE_ROOM = 4096,
    TEXT_ROOM = 512 * 1024
};

/* A text of two halves: between them belongs how the process ended. */
struct text {
    uint32_t bytes, first_half_bytes;
    char begin[TEXT_ROOM];
};

/* One text is written while the other stands, so that the process may end at any time. */
struct document {
    char file[FILE_ROOM];      /* whole, and ended by 0; empty: standard error */
    _Atomic uint32_t standing; /* 0: none yet; 1, 2: the first, the second text */
    struct text texts[2];
};

struct record {
    uint32_t version;
    _Atomic uint32_t is_told; /* 1: the process has reported by itself, or does not want to any more */
    struct document documents[DOCUMENTS];
};

#endif
