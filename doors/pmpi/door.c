/*
 * A door under libpolycast-mpi.so: compiled with the mpicc of one MPI family, opened by it.
 *
 * It takes a call, hands it back to the stock MPI if anything about it is unusual or the runtime says so, and
 * otherwise turns buffer, count and datatype into bytes for the runtime. What every rank of the communicator
 * decides here must be decided from what all ranks know (bytes, root, communicator), or for errors of one
 * rank's own arguments, which the stock MPI then reports in its own words.
 *
 * All MPI functions are called by their PMPI names and resolved in the libmpi that is already loaded; only those of
 * entries.h are ours, too, and the real ones are handed to us.
 */
#include <stdio.h>

#include "door.h"
#include "preload.h"

static struct entries stock;

int door_stock_broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return stock.Bcast(buffer, count, (handle)type, root, (handle)comm);
}

/* Arguments that the stock MPI would refuse (or that mean something special to it) are for the stock MPI. */
static int arguments_are_ordinary(const struct broadcast *call) {
    return call->comm != MPI_COMM_NULL && call->count > 0 && call->type != MPI_DATATYPE_NULL &&
           call->root >= 0;
}

/* Bytes of the whole call, the same on all ranks; 0 for what is not served. */
static size_t total_bytes(const struct broadcast *call) {
    MPI_Count size;
    if (PMPI_Type_size_x(call->type, &size) != MPI_SUCCESS || size <= 0) {
        return 0;
    }
    MPI_Count bytes;
    return __builtin_mul_overflow(size, call->count, &bytes) ? 0 : (size_t)bytes;
}

/* What stock would refuse is not counted. */
static void count_unusual(const struct broadcast *call) {
    if (call->count == 0) {
        polycast_count_left(POLYCAST_BECAUSE_EMPTY, 0);
    } else if (call->root == MPI_ROOT && call->count > 0 && call->type != MPI_DATATYPE_NULL) {
        polycast_count_left(POLYCAST_BECAUSE_INTERCOMMUNICATOR, total_bytes(call));
    }
}

/* What a handler did with a call: it was served, or is for stock. */
struct outcome {
    int is_served;
    int result;                 /* if it was served */
    struct communicator *timed; /* to be told when stock has done it; NULL: nobody */
};

/* How the runtime serves this call; NULL if it is left to stock. */
static inline struct polycast_plan *plan_for(const struct broadcast *call, size_t *bytes,
                                             struct communicator **state, struct outcome *outcome) {
    if (door_is_over()) {
        return NULL;
    }
    if (!arguments_are_ordinary(call)) {
        count_unusual(call);
        return NULL;
    }
    int is_known = door_known_communicator(call->comm, state);
    *bytes = total_bytes(call);
    if (*bytes == 0) {
        polycast_count_left(POLYCAST_BECAUSE_EMPTY, 0);
        return NULL;
    }
    if (!is_known) {
        *state = door_communicator(call->comm);
    }
    if (!*state) {
        return NULL;
    }
    if (!(*state)->runtime) {
        polycast_count_left((*state)->left_because, *bytes);
        return NULL;
    }
    if (call->root >= (*state)->size) {
        return NULL;
    }
    const polycast_call wanted = {.collective = POLYCAST_BROADCAST, .root = call->root, .bytes = *bytes};
    struct polycast_plan *plan;
    if (polycast_plan((*state)->runtime, &wanted, &plan) == POLYCAST_LEFT_AND_TIMED) {
        outcome->timed = *state;
    }
    return plan;
}

static inline struct outcome handle_Bcast(void *buffer, MPI_Count count, handle type, int root, handle comm) {
    struct outcome outcome = {0};
    struct communicator *state;
    size_t bytes;
    const struct broadcast call = {buffer, count, (MPI_Datatype)type, root, (MPI_Comm)comm};
    struct polycast_plan *plan = plan_for(&call, &bytes, &state, &outcome);
    if (plan) {
        outcome.is_served = door_serve_broadcast(&call, state, plan, bytes, &outcome.result);
        polycast_plan_free(plan);
    }
    return outcome;
}

/* Only counted. What stock would refuse is not. */
static inline struct outcome left_unserved(uint32_t operation, MPI_Count count, handle type) {
    MPI_Count size;
    if (count >= 0 && (MPI_Datatype)type != MPI_DATATYPE_NULL &&
        PMPI_Type_size_x((MPI_Datatype)type, &size) == MPI_SUCCESS && size >= 0) {
        polycast_count_unserved(operation, (uint64_t)size * (uint64_t)count);
    }
    return (struct outcome){0};
}

static inline struct outcome handle_Ibcast(void *buffer, MPI_Count count, handle type, int root, handle comm,
                                           handle *request) {
    (void)buffer, (void)root, (void)comm, (void)request;
    return left_unserved(POLYCAST_UNSERVED_IBCAST, count, type);
}

static inline struct outcome handle_Bcast_init(void *buffer, MPI_Count count, handle type, int root,
                                               handle comm, handle info, handle *request) {
    (void)buffer, (void)root, (void)comm, (void)info, (void)request;
    return left_unserved(POLYCAST_UNSERVED_BCAST_INIT, count, type);
}

static inline int after_stock(int result, const struct communicator *timed) {
    if (timed) {
        polycast_end_of_stock(timed->runtime);
    }
    return result;
}

/* Both widths of a function have the same handler. */
#define DOOR(function, handler, parameters, names)                                                           \
    static int door_##function parameters {                                                                  \
        const struct outcome outcome = handler names;                                                        \
        return outcome.is_served ? outcome.result : after_stock(stock.function names, outcome.timed);        \
    }
#define DOOR_INT(name, parameters, names, fits) DOOR(name, handle_##name, parameters, names)
#define DOOR_C(name, parameters, names, fits) DOOR(name##_c, handle_##name, parameters, names)
POLYCAST_ENTRIES(DOOR_INT, int)
POLYCAST_ENTRIES(DOOR_C, int64_t)

/* Local, so a communicator that has had no broadcast is not attached for it: its broadcasts are stock's so far. */
static int door_choice(handle comm, int64_t bytes, char *text, int size) {
    struct communicator *state = NULL;
    if (bytes > 0 && size > 0 && door_known_communicator((MPI_Comm)comm, &state) && state->runtime) {
        return polycast_name_choice(state->runtime, (size_t)bytes, text, (size_t)size);
    }
    if (size > 0) {
        snprintf(text, (size_t)size, "stock");
    }
    return 0;
}

#define EXPORT __attribute__((visibility("default")))

EXPORT extern const uint32_t polycast_door_version;
const uint32_t polycast_door_version = POLYCAST_INTERFACE_VERSION;

EXPORT open_function polycast_door_open;

void polycast_door_open(const struct entries *library, struct served *served) {
    if (!polycast_is_enabled()) {
        return;
    }
    stock = *library;
#define SERVED(name, parameters, names, fits) .name = door_##name, .name##_c = door_##name##_c,
    *served = (struct served){.entries = {POLYCAST_ENTRIES(SERVED, )},
                              .configure = polycast_set,
                              .choice = door_choice,
                              .begin = door_begin,
                              .build_identity = polycast_build_identity()};
}
