/*
 * A door for MPI_Bcast: compiled with the mpicc of one MPI family, opened by libpolycast-mpi.so.
 *
 * It takes a call, hands it back to the stock MPI if anything about it is unusual or the runtime says so, and
 * otherwise turns buffer, count and datatype into bytes for the runtime. What every rank of the communicator
 * decides here must be decided from what all ranks know (bytes, root, communicator), or for errors of one
 * rank's own arguments, which the stock MPI then reports in its own words.
 *
 * All MPI functions are called by their PMPI names and resolved in the libmpi that is already loaded; only
 * PMPI_Bcast is ours, too, and the real one is handed to us.
 */
#include <stdio.h>
#include <stdlib.h>

#include "door.h"
#include "preload.h"

static struct stock stock_functions;

int door_stock_broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return stock_functions.bcast(buffer, count, (handle)type, root, (handle)comm);
}

/* One broadcast as the program asked for it. */
struct call {
    void *buffer;
    MPI_Count count;
    MPI_Datatype type;
    int root;
    MPI_Comm comm;
};

/* Arguments that the stock MPI would refuse (or that mean something special to it) are for the stock MPI. */
static int arguments_are_ordinary(const struct call *call) {
    return call->comm != MPI_COMM_NULL && call->count > 0 && call->type != MPI_DATATYPE_NULL &&
           call->root >= 0;
}

/* Bytes of the whole call, the same on all ranks; 0 for what is not served. */
static size_t total_bytes(const struct call *call) {
    MPI_Count size;
    if (PMPI_Type_size_x(call->type, &size) != MPI_SUCCESS || size <= 0) {
        return 0;
    }
    MPI_Count bytes;
    return __builtin_mul_overflow(size, call->count, &bytes) ? 0 : (size_t)bytes;
}

/* What stock would refuse is not counted. */
static void count_unusual(const struct call *call) {
    if (call->count == 0) {
        polycast_count_left(POLYCAST_BECAUSE_EMPTY, 0);
    } else if (call->root == MPI_ROOT && call->count > 0 && call->type != MPI_DATATYPE_NULL) {
        polycast_count_left(POLYCAST_BECAUSE_INTERCOMMUNICATOR, total_bytes(call));
    }
}

/* The communicator's state if the runtime serves this call, NULL if it is left to stock; then *timed is the state that is to be
 * told of its end, if any. */
static inline struct communicator *served_by(const struct call *call, size_t *bytes,
                                             struct communicator **timed) {
    struct communicator *state;
    *timed = NULL;
    if (door_is_over()) {
        return NULL;
    }
    if (!arguments_are_ordinary(call)) {
        count_unusual(call);
        return NULL;
    }
    int is_known = door_known_communicator(call->comm, &state);
    *bytes = total_bytes(call);
    if (*bytes == 0) {
        polycast_count_left(POLYCAST_BECAUSE_EMPTY, 0);
        return NULL;
    }
    if (!is_known) {
        state = door_communicator(call->comm);
    }
    if (!state) {
        return NULL;
    }
    if (!state->runtime) {
        polycast_count_left(state->left_because, *bytes);
        return NULL;
    }
    int choice = call->root < state->size ? polycast_choose_broadcast(state->runtime, *bytes) : POLYCAST_LEFT;
    *timed = choice == POLYCAST_LEFT_AND_TIMED ? state : NULL;
    return choice == POLYCAST_SERVED ? state : NULL;
}

/* A datatype that was not committed: MPI only tells by refusing it, so it is asked to send and to pack
 * nothing. (Open MPI looks when it sends, MPICH when it packs.) The private communicator returns errors. */
static int is_committed(MPI_Datatype type, MPI_Comm private_comm) {
    char nothing[1];
    int position = 0;
    return PMPI_Send(nothing, 0, type, MPI_PROC_NULL, 0, private_comm) == MPI_SUCCESS &&
           PMPI_Pack(nothing, 0, type, nothing, 0, &position, private_comm) == MPI_SUCCESS;
}

/* Reports like the stock MPI: through the error handler of the program's communicator. */
static int report_error(MPI_Comm comm, int error) {
    if (error == POLYCAST_ERROR_SIZE) {
        error = MPI_ERR_TRUNCATE;
    } else if (error < 0) {
        error = MPI_ERR_INTERN;
    }
    PMPI_Comm_call_errhandler(comm, error);
    return error;
}

/* Between the program's buffer and a stretch of bytes in the host's memory. MPI's own packing reads and writes any memory that
 * the program may give to MPI. */
static int copy_message(enum direction direction, const struct call *call, const struct communicator *state,
                        const struct element *element, enum memory memory, void *bytes, size_t length) {
    if (!element->is_contiguous) {
        return door_convert(direction, call->buffer, call->count, call->type, element, bytes,
                            state->private_comm);
    }
    char *first_byte = (char *)call->buffer + element->true_lower;
    return direction == TO_PACKED ? door_copy(memory, bytes, first_byte, length)
                                  : door_copy(memory, first_byte, bytes, length);
}

static int broadcast_by_copy(const struct call *call, struct communicator *state,
                             const struct element *element, enum memory memory, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) {
        return MPI_ERR_NO_MEM;
    }
    int is_root = state->rank == call->root;
    int error = MPI_SUCCESS;
    if (is_root) {
        error = copy_message(TO_PACKED, call, state, element, memory, copy, bytes);
    }
    if (!error) {
        error = polycast_broadcast(state->runtime, copy, bytes, call->root);
    }
    if (!error && !is_root) {
        error = copy_message(FROM_PACKED, call, state, element, memory, copy, bytes);
    }
    free(copy);
    return error;
}

static int broadcast_elements(const struct call *call, struct communicator *state,
                              const struct element *element, size_t bytes) {
    if (state->private_comm == MPI_COMM_NULL) {
        /* It could not be opened, and the runtime knows the error: no data moves. */
        return polycast_broadcast(state->runtime, NULL, bytes, call->root);
    }
    char *first_byte = (char *)call->buffer + element->true_lower;
    enum memory memory = element->is_contiguous ? door_memory_of(first_byte) : HOST_MEMORY;
    return element->is_contiguous && memory == HOST_MEMORY
               ? polycast_broadcast(state->runtime, first_byte, bytes, call->root)
               : broadcast_by_copy(call, state, element, memory, bytes);
}

/* What only the stock MPI can say in its own words: a missing buffer, a datatype that was not committed, a communicator that
 * was revoked. */
static int has_local_error(const struct call *call, const struct communicator *state) {
    if (call->buffer == MPI_IN_PLACE || door_is_revoked(state)) {
        return 1;
    }
    return door_is_named_type(call->type) ? !call->buffer : !is_committed(call->type, state->private_comm);
}

/* Returns 0 if the call is for stock after all, because of an error that only this rank's arguments have, or one that stock
 * has to say: the communicator was revoked. */
static int serve(const struct call *call, struct communicator *state, size_t bytes, int *result) {
    if (state->private_comm != MPI_COMM_NULL && has_local_error(call, state)) {
        return 0;
    }
    struct element element;
    int error = door_look_at_type(call->type, call->count, &element);
    if (!error) {
        error = broadcast_elements(call, state, &element, bytes);
    }
    if (error && door_is_revoked(state)) {
        return 0;
    }
    *result = error ? report_error(call->comm, error) : MPI_SUCCESS;
    return 1;
}

/* Serves the call if it is for us; otherwise returns 0, and it is for stock. */
static int try_to_serve(const struct call *call, int *result, struct communicator **timed) {
    size_t bytes;
    struct communicator *state = served_by(call, &bytes, timed);
    return state && serve(call, state, bytes, result);
}

/* Stock has done a call. */
static inline int stock_result(int result, struct communicator *timed) {
    if (timed) {
        polycast_end_of_stock(timed->runtime);
    }
    return result;
}

static int door_bcast(void *buffer, int count, handle type, int root, handle comm) {
    int result;
    struct communicator *timed;
    const struct call call = {buffer, count, (MPI_Datatype)type, root, (MPI_Comm)comm};
    return try_to_serve(&call, &result, &timed)
               ? result
               : stock_result(stock_functions.bcast(buffer, count, type, root, comm), timed);
}

static int door_bcast_c(void *buffer, int64_t count, handle type, int root, handle comm) {
    int result;
    struct communicator *timed;
    const struct call call = {buffer, count, (MPI_Datatype)type, root, (MPI_Comm)comm};
    return try_to_serve(&call, &result, &timed)
               ? result
               : stock_result(stock_functions.bcast_c(buffer, count, type, root, comm), timed);
}

/* Only counted. What stock would refuse is not. */
static void count_ibcast(MPI_Count count, handle type) {
    MPI_Count size;
    if (count >= 0 && (MPI_Datatype)type != MPI_DATATYPE_NULL &&
        PMPI_Type_size_x((MPI_Datatype)type, &size) == MPI_SUCCESS && size >= 0) {
        polycast_count_unserved(POLYCAST_UNSERVED_IBCAST, (uint64_t)size * (uint64_t)count);
    }
}

static int door_ibcast(void *buffer, int count, handle type, int root, handle comm, handle *request) {
    count_ibcast(count, type);
    return stock_functions.ibcast(buffer, count, type, root, comm, request);
}

static int door_ibcast_c(void *buffer, int64_t count, handle type, int root, handle comm, handle *request) {
    count_ibcast(count, type);
    return stock_functions.ibcast_c(buffer, count, type, root, comm, request);
}

/* Local, so a communicator that has had no broadcast is not attached for it: its broadcasts are stock's so far. */
static int door_choice(handle comm, int64_t bytes, char *text, int size) {
    struct communicator *state = NULL;
    if (bytes > 0 && size > 0 && door_known_communicator((MPI_Comm)comm, &state) && state->runtime) {
        polycast_name_choice(state->runtime, (size_t)bytes, text, (size_t)size);
    } else if (size > 0) {
        snprintf(text, (size_t)size, "stock");
    }
    return 0;
}

__attribute__((visibility("default"))) open_function polycast_door_open;

void polycast_door_open(const struct stock *stock, struct served *served) {
    if (!polycast_is_enabled()) {
        return;
    }
    stock_functions = *stock;
    *served = (struct served){.bcast = door_bcast,
                              .bcast_c = door_bcast_c,
                              .ibcast = door_ibcast,
                              .ibcast_c = door_ibcast_c,
                              .configure = polycast_set,
                              .choice = door_choice,
                              .begin = door_begin,
                              .build_identity = polycast_build_identity()};
}
