#include "flow.h"

#include <stddef.h>

#include "common_clock.h"
#include "nap.h"

enum { TAG_FLOW = 12, TAG_LAST = 13, UNDER_WAY = 2 };

/* Short against a message, which should take milliseconds. */
static const int64_t NAP_NS = 50 * 1000;

static void send(const struct order *order, int to, MPI_Comm comm, unsigned char *buffer) {
    const int64_t end_ns = local_now_ns() + order->warm_up_ns + order->time_ns;
    MPI_Request requests[UNDER_WAY];
    for (int i = 0; i < UNDER_WAY; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int next = 0; local_now_ns() < end_ns; next = (next + 1) % UNDER_WAY) {
        nap_until_complete(&requests[next], MPI_STATUS_IGNORE, NAP_NS);
        MPI_Issend(buffer, order->bytes, MPI_BYTE, to, TAG_FLOW, comm, &requests[next]);
    }
    for (int i = 0; i < UNDER_WAY; i++)
        nap_until_complete(&requests[i], MPI_STATUS_IGNORE, NAP_NS);
    MPI_Send(NULL, 0, MPI_BYTE, to, TAG_LAST, comm);
}

static void receive(const struct order *order, int from, MPI_Comm comm, unsigned char *buffer,
                    int64_t *values) {
    const int64_t from_ns = local_now_ns() + order->warm_up_ns, until_ns = from_ns + order->time_ns;
    int64_t first_ns = 0, last_ns = 0, arrivals = 0;
    for (;;) {
        MPI_Request request;
        MPI_Irecv(buffer, order->bytes, MPI_BYTE, from, MPI_ANY_TAG, comm, &request);
        MPI_Status status;
        nap_until_complete(&request, &status, NAP_NS);
        if (status.MPI_TAG == TAG_LAST)
            break;
        const int64_t now_ns = local_now_ns();
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
