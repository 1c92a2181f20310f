#include "flow.h"

#include <stddef.h>

#include "common_clock.h"
#include "nap.h"

enum { TAG_FLOW = 12, TAG_LAST = 13 };

/* Short against a message, which should take milliseconds. */
static const int64_t NAP_NS = 50 * 1000;

static void send(const struct order *order, int to, MPI_Comm comm, unsigned char *buffer) {
    const int64_t end_ns = local_now_ns() + order->warm_up_ns + order->time_ns;
    MPI_Request requests[FLOW_UNDER_WAY];
    for (int i = 0; i < FLOW_UNDER_WAY; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int next = 0; local_now_ns() < end_ns; next = (next + 1) % FLOW_UNDER_WAY) {
        nap_until_complete(&requests[next], MPI_STATUS_IGNORE, NAP_NS);
        MPI_Issend(buffer, order->bytes, MPI_BYTE, to, TAG_FLOW, comm, &requests[next]);
    }
    for (int i = 0; i < FLOW_UNDER_WAY; i++)
        nap_until_complete(&requests[i], MPI_STATUS_IGNORE, NAP_NS);
    /* One for each receive that is still posted. */
    for (int i = 0; i < FLOW_UNDER_WAY; i++)
        MPI_Send(NULL, 0, MPI_BYTE, to, TAG_LAST, comm);
}

static void receive(const struct order *order, int from, MPI_Comm comm, unsigned char *buffer,
                    int64_t *values) {
    const int64_t from_ns = local_now_ns() + order->warm_up_ns, until_ns = from_ns + order->time_ns;
    int64_t first_ns = 0, last_ns = 0, arrivals = 0;
    MPI_Request requests[FLOW_UNDER_WAY];
    for (int i = 0; i < FLOW_UNDER_WAY; i++)
        MPI_Irecv(buffer + (size_t)i * (size_t)order->bytes, order->bytes, MPI_BYTE, from, MPI_ANY_TAG, comm,
                  &requests[i]);
    /* Messages between two ranks match in order, so the receives complete in turn. */
    for (int next = 0, ended = 0; ended < FLOW_UNDER_WAY; next = (next + 1) % FLOW_UNDER_WAY) {
        MPI_Status status;
        nap_until_complete(&requests[next], &status, NAP_NS);
        const int64_t now_ns = local_now_ns();
        if (status.MPI_TAG == TAG_LAST) {
            ended++;
            continue;
        }
        MPI_Irecv(buffer + (size_t)next * (size_t)order->bytes, order->bytes, MPI_BYTE, from, MPI_ANY_TAG,
                  comm, &requests[next]);
        if (now_ns < from_ns || now_ns > until_ns)
            continue;
        first_ns = arrivals == 0 ? now_ns : first_ns;
        last_ns = now_ns;
        arrivals++;
    }
    values[0] = arrivals > 1 ? (arrivals - 1) * order->bytes : 0;
    values[1] = arrivals > 1 ? last_ns - first_ns : 0;
}

void flow_run(const struct order *order, struct way way, int rank, MPI_Comm comm, unsigned char *buffer,
              int64_t *values) {
    if (rank == way.from)
        send(order, way.to, comm, buffer);
    else
        receive(order, way.from, comm, buffer, values);
}
