/* Part of the door of Open MPI: where calls come in that its component takes. */
#include "entrance.h"

#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "service.h"

static int combines(const struct call *call) {
    return call->collective == POLYCAST_REDUCE || call->collective == POLYCAST_ALLREDUCE;
}

static struct outcome serve(const struct call *call, MPI_Op op) {
    struct reduction reduction;
    if (call->blocks) {
        return outcome_of_blocks(*call, *call->blocks);
    }
    return outcome_of(call, op, combines(call) ? &reduction : NULL);
}

static void end_of_stock(const struct communicator *timed) {
    polycast_end_of_stock(timed->runtime);
}

struct flight {
    struct service service;
    struct blocks blocks;
    struct reduction reduction;
    struct communicator *state;
    struct polycast_plan *plan;
    polycast_operation operation;
    MPI_Count vectors[]; /* room for a copy of what the blocks point to */
};

/* The ranks that send blocks of lengths of their own; 0: there are no such blocks, or stock says what is wrong. */
static size_t vector_length(const struct call *call) {
    int size;
    return call->blocks && !door_is_over() && senders_in(call->comm, &size) == MPI_SUCCESS ? (size_t)size : 0;
}

/* MPI wants a program to keep what tells lengths and places until the call has ended, but mpi4py's ints for an MPI without
 * large counts are gone when it has begun; Open MPI itself does not look at them any more. */
static void keep_vectors(struct flight *flight, size_t length) {
    struct blocks *blocks = &flight->blocks;
    const size_t of_count = blocks->are_wide ? sizeof(MPI_Count) : sizeof(int);
    const size_t of_place = blocks->are_wide ? sizeof(MPI_Aint) : sizeof(int);
    blocks->counts = memcpy(flight->vectors, blocks->counts, length * of_count);
    blocks->places = memcpy(flight->vectors + length, blocks->places, length * of_place);
}

/* With what the plan points to; NULL: it is for stock. */
static struct polycast_plan *plan_flight(struct call *call, enum when when, MPI_Op op, struct flight *flight,
                                         size_t *bytes) {
    struct outcome outcome;
    if (call->blocks) {
        flight->blocks = *call->blocks;
        if (!measure_blocks(call, when, &flight->blocks)) {
            return NULL;
        }
    }
    return plan_for(call, when, op, combines(call) ? &flight->reduction : NULL, bytes, &flight->state,
                    &outcome);
}

static void count_unserved(const struct call *call, uint32_t form) {
    const struct data *data =
        call->collective == POLYCAST_GATHER || call->blocks ? &call->send : &call->receive;
    polycast_count_unserved(call->blocks ? POLYCAST_ALLGATHERV : call->collective, form,
                            call->collective == POLYCAST_BARRIER ? 0 : bytes_of(data->count, data->type));
}

static struct flight *start(const struct call *made, MPI_Op op, uint32_t form, int *result) {
    const size_t length = vector_length(made);
    struct flight *flight = malloc(sizeof *flight + 2 * length * sizeof flight->vectors[0]);
    struct call call = *made;
    size_t bytes;
    int error;
    *result = MPI_SUCCESS;
    if (!flight) {
        *result = MPI_ERR_NO_MEM;
        return NULL;
    }
    flight->plan = plan_flight(&call, AHEAD, op, flight, &bytes);
    if (flight->plan && call.blocks) {
        keep_vectors(flight, length);
    }
    const int is_served =
        flight->plan && door_begin_service(&call, flight->state, bytes, &flight->service, &error);
    if (is_served && !error) {
        struct service *service = &flight->service;
        error =
            polycast_start(flight->plan, service->sent.place, service->received.place, &flight->operation);
    }
    if (is_served && !error) {
        flight->state->flights++;
        return flight;
    }
    if (flight->plan) {
        polycast_plan_free(flight->plan);
    }
    if (is_served) {
        door_end_service(&flight->service, error, result);
    } else {
        count_unserved(made, form);
    }
    free(flight);
    return NULL;
}

static int has_ended(struct flight *flight, int *result) {
    int is_over;
    if (door_is_over()) {
        return 0;
    }
    const int error = polycast_test(&flight->operation, &is_over);
    if (!is_over) {
        return 0;
    }
    *result = error;
    polycast_plan_free(flight->plan);
    door_end_service(&flight->service, error, result);
    /* Last: another thread may wait for it to free the communicator. */
    __atomic_fetch_sub(&flight->state->flights, 1, __ATOMIC_RELEASE);
    free(flight);
    return 1;
}

static void prepare(const struct call *made, MPI_Op op) {
    struct flight flight;
    struct call call = *made;
    size_t bytes;
    struct polycast_plan *plan = plan_flight(&call, PREPARED, op, &flight, &bytes);
    if (plan) {
        polycast_plan_free(plan);
    }
}

#define EXPORT __attribute__((visibility("default")))

EXPORT open_function polycast_door_open; /* doors/pmpi/door.c */
EXPORT enter_function polycast_door_enter;

const struct entrance *polycast_door_enter(uint32_t interface_version, const struct insides *insides) {
    static const struct entrance entrance = {.open = polycast_door_open,
                                             .serve = serve,
                                             .end_of_stock = end_of_stock,
                                             .start = start,
                                             .has_ended = has_ended,
                                             .prepare = prepare};
    if (interface_version != POLYCAST_INTERFACE_VERSION) {
        return NULL;
    }
    door_reports_errors = 0;
    door_is_opaque_type = insides->is_opaque_type;
    door_has_completed = insides->has_completed;
    door_wait_for_flights = insides->wait_for_flights;
    return &entrance;
}
