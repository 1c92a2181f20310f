/* What ranks of a rank server are told to measure (rank_server.h): one line of text each. */
#ifndef POLYCAST_BENCH_ORDER_H
#define POLYCAST_BENCH_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { MAX_FLOWS = 32, MAX_SAMPLES = 2048 };

enum order_kind { ORDER_END, ORDER_STREAM, ORDER_PINGPONG, ORDER_FLOWS };

/* Two ranks, and the way that data goes. */
struct way {
    int32_t from;
    int32_t to;
};

/* Travels as bytes. */
struct order {
    int32_t kind;
    int32_t bytes; /* of a message */
    /* of a stream */
    int32_t warm_up; /* messages that are not measured */
    int32_t batch;   /* messages between two stamps */
    /* of a stream: batches; of a ping-pong: round trips */
    int32_t samples;
    /* of a ping-pong */
    int64_t pause_ns; /* before each round trip */
    int64_t dummy_ns; /* of computation between send and receive */
    /* of flows */
    int64_t warm_up_ns;
    int64_t time_ns; /* measured, after that */
    int32_t way_count;
    struct way ways[MAX_FLOWS]; /* one, but for flows */
};

/* Reads one of
 *
 *     stream FROM TO BYTES WARM-UP BATCH SAMPLES
 *     pingpong FROM TO BYTES PAUSE-NS DUMMY-NS SAMPLES
 *     flows BYTES WARM-UP-NS TIME-NS FROM TO [FROM TO …]
 *     end
 *
 * Returns NULL, or what was expected. */
const char *order_read(struct order *order, const char *line, int ranks);

#endif
