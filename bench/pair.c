#include "pair.h"

#include <stdbool.h>
#include <stddef.h>

#include "common_clock.h"

enum { TAG_DATA = 10, TAG_ACK = 11 };

static void pass(bool sends, const struct order *order, MPI_Comm comm, unsigned char *buffer) {
    const struct way way = order->ways[0];
    if (sends)
        MPI_Send(buffer, order->bytes, MPI_BYTE, way.to, TAG_DATA, comm);
    else
        MPI_Recv(buffer, order->bytes, MPI_BYTE, way.from, TAG_DATA, comm, MPI_STATUS_IGNORE);
}

void pair_stream(const struct order *order, int rank, MPI_Comm comm, unsigned char *buffer, int64_t *values) {
    const struct way way = order->ways[0];
    const bool sends = rank == way.from;
    for (int i = 0; i < order->warm_up; i++)
        pass(sends, order, comm, buffer);
    int64_t before_ns = local_now_ns();
    for (int sample = 0; sample < order->samples; sample++) {
        for (int i = 0; i < order->batch; i++)
            pass(sends, order, comm, buffer);
        const int64_t now_ns = local_now_ns();
        values[sample] = now_ns - before_ns;
        before_ns = now_ns;
    }
    if (sends)
        MPI_Recv(NULL, 0, MPI_BYTE, way.to, TAG_ACK, comm, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_BYTE, way.from, TAG_ACK, comm);
}

/* Computes for so long, and calls no MPI meanwhile. The clock is what is computed, so that the length is right at any
 * speed of the processor. */
static void compute_ns(int64_t time_ns) {
    const int64_t end_ns = local_now_ns() + time_ns;
    while (local_now_ns() < end_ns)
        ;
}

static void ping(const struct order *order, MPI_Comm comm, unsigned char *buffer, int64_t *values) {
    const int peer = order->ways[0].to;
    if (order->pause_ns > 0)
        sleep_until_ns(local_now_ns() + order->pause_ns, 0);
    const int64_t start_ns = local_now_ns();
    MPI_Send(buffer, order->bytes, MPI_BYTE, peer, TAG_DATA, comm);
    const int64_t sent_ns = local_now_ns();
    if (order->dummy_ns > 0)
        compute_ns(order->dummy_ns);
    const int64_t called_ns = local_now_ns();
    MPI_Recv(buffer, order->bytes, MPI_BYTE, peer, TAG_DATA, comm, MPI_STATUS_IGNORE);
    const int64_t end_ns = local_now_ns();
    values[0] = sent_ns - start_ns;
    values[1] = end_ns - called_ns;
    values[2] = end_ns - start_ns;
}

void pair_pingpong(const struct order *order, int rank, MPI_Comm comm, unsigned char *buffer,
                   int64_t *values) {
    const struct way way = order->ways[0];
    for (int trip = -1; trip < order->samples; trip++) {
        if (rank == way.from) {
            ping(order, comm, buffer, values + 3 * (trip > 0 ? trip : 0));
            continue;
        }
        MPI_Recv(buffer, order->bytes, MPI_BYTE, way.from, TAG_DATA, comm, MPI_STATUS_IGNORE);
        MPI_Send(buffer, order->bytes, MPI_BYTE, way.from, TAG_DATA, comm);
    }
}
