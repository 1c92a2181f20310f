/*
 * A broadcast in MPI's words, as a stretch of bytes for the runtime: where it lies, whether it must be packed or copied, and
 * what is said of errors.
 */
#include <stdlib.h>

#include "door.h"

/* A datatype that was not committed: MPI only tells by refusing it, so it is asked to send and to pack
 * nothing. (Open MPI looks when it sends, MPICH when it packs.) The private communicator returns errors. */
static int is_committed(MPI_Datatype type) {
    char nothing[1];
    int position = 0;
    return PMPI_Send(nothing, 0, type, MPI_PROC_NULL, 0, door_private) == MPI_SUCCESS &&
           PMPI_Pack(nothing, 0, type, nothing, 0, &position, door_private) == MPI_SUCCESS;
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
static int copy_message(enum direction direction, const struct broadcast *call, const struct element *element,
                        enum memory memory, void *bytes, size_t length) {
    if (!element->is_contiguous) {
        return door_convert(direction, call->buffer, call->count, call->type, element, bytes);
    }
    char *first_byte = (char *)call->buffer + element->true_lower;
    return direction == TO_PACKED ? door_copy(memory, bytes, first_byte, length)
                                  : door_copy(memory, first_byte, bytes, length);
}

static int broadcast_by_copy(const struct broadcast *call, const struct communicator *state,
                             struct polycast_plan *plan, const struct element *element, enum memory memory,
                             size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) {
        return MPI_ERR_NO_MEM;
    }
    int is_root = state->rank == call->root;
    int error = MPI_SUCCESS;
    if (is_root) {
        error = copy_message(TO_PACKED, call, element, memory, copy, bytes);
    }
    if (!error) {
        error = polycast_run(plan, copy, copy);
    }
    if (!error && !is_root) {
        error = copy_message(FROM_PACKED, call, element, memory, copy, bytes);
    }
    free(copy);
    return error;
}

static int broadcast_elements(const struct broadcast *call, const struct communicator *state,
                              struct polycast_plan *plan, const struct element *element, size_t bytes) {
    char *first_byte = (char *)call->buffer + element->true_lower;
    enum memory memory = element->is_contiguous ? door_memory_of(first_byte) : HOST_MEMORY;
    return element->is_contiguous && memory == HOST_MEMORY
               ? polycast_run(plan, first_byte, first_byte)
               : broadcast_by_copy(call, state, plan, element, memory, bytes);
}

/* What only the stock MPI can say in its own words: a missing buffer, a datatype that was not committed, a communicator that
 * was revoked. */
static int has_local_error(const struct broadcast *call, const struct communicator *state) {
    if (call->buffer == MPI_IN_PLACE || door_is_revoked(state)) {
        return 1;
    }
    return door_is_named_type(call->type) ? !call->buffer : !is_committed(call->type);
}

int door_serve_broadcast(const struct broadcast *call, struct communicator *state, struct polycast_plan *plan,
                         size_t bytes, int *result) {
    if (has_local_error(call, state)) {
        return 0;
    }
    struct element element;
    int error = door_look_at_type(call->type, call->count, &element);
    if (!error) {
        error = broadcast_elements(call, state, plan, &element, bytes);
    }
    if (error && door_is_revoked(state)) {
        return 0;
    }
    *result = error ? report_error(call->comm, error) : MPI_SUCCESS;
    return 1;
}
