/*
 * A collective in MPI's words, as stretches of bytes for the runtime: where they lie, whether they must be packed or copied, and
 * what is said of errors.
 */
#include <stdlib.h>
#include <string.h>

#include "service.h"

/* A datatype that was not committed: MPI only tells by refusing it, so it is asked to send and to pack
 * nothing. (Open MPI looks when it sends, MPICH when it packs.) The private communicator returns errors. */
static int is_committed(MPI_Datatype type) {
    char nothing[1];
    int position = 0;
    return PMPI_Send(nothing, 0, type, MPI_PROC_NULL, 0, door_private) == MPI_SUCCESS &&
           PMPI_Pack(nothing, 0, type, nothing, 0, &position, door_private) == MPI_SUCCESS;
}

int door_reports_errors = 1;

/* Reports like the stock MPI: through the error handler of the program's communicator. */
static int report_error(MPI_Comm comm, int error) {
    if (error == POLYCAST_ERROR_SIZE) {
        error = MPI_ERR_TRUNCATE;
    } else if (error < 0) {
        error = MPI_ERR_INTERN;
    }
    if (door_reports_errors) {
        PMPI_Comm_call_errhandler(comm, error);
    }
    return error;
}

MPI_Count door_count_of(const struct blocks *blocks, int rank) {
    return blocks->are_wide ? ((const MPI_Count *)blocks->counts)[rank] : ((const int *)blocks->counts)[rank];
}

MPI_Aint door_place_of(const struct blocks *blocks, int rank) {
    return blocks->are_wide ? ((const MPI_Aint *)blocks->places)[rank] : ((const int *)blocks->places)[rank];
}

/* Whether what is sent and where it is to be received is the same memory, though nobody says MPI_IN_PLACE. MPICH refuses that, Open MPI
 * in reductions only. */
static int is_one_place(const struct call *call, int rank) {
    const char *send = call->send.buffer, *receive = call->receive.buffer;
    const MPI_Count received = call->blocks ? door_count_of(call->blocks, rank) : call->receive.count;
    /* Of no elements MPICH does not look where they are. */
    if (received == 0 || call->send.count != received || call->send.type != call->receive.type) {
        return 0;
    }
    MPI_Aint lower, extent = 0;
    switch (call->collective) {
    case POLYCAST_GATHER:
    case POLYCAST_ALLGATHER:
        PMPI_Type_get_extent(call->receive.type, &lower, &extent);
        return send ==
               receive + (call->blocks ? door_place_of(call->blocks, rank) : rank * received) * extent;
    case POLYCAST_SCATTER:
        PMPI_Type_get_extent(call->send.type, &lower, &extent);
        return receive == send + rank * call->send.count * extent;
    default:
        return send == receive;
    }
}

static struct part part_of(const struct call *call, const struct communicator *state) {
    struct part part = {1, 1, 0};
    int is_root = state->rank == call->root, may_be_in_place = 1;
    switch (call->collective) {
    case POLYCAST_BROADCAST:
        return (struct part){is_root, !is_root, 0};
    case POLYCAST_BARRIER:
        return (struct part){0, 0, 0};
    case POLYCAST_SCATTER:
        part.sent = is_root ? state->size : 0;
        may_be_in_place = is_root;
        break;
    case POLYCAST_GATHER:
        part.received = is_root ? state->size : 0;
        may_be_in_place = is_root;
        break;
    case POLYCAST_REDUCE:
        part.received = may_be_in_place = is_root;
        break;
    case POLYCAST_ALLGATHER:
        part.received = state->size;
        break;
    case POLYCAST_ALLTOALL:
        part.sent = part.received = state->size;
        break;
    }
    const void *marked = call->collective == POLYCAST_SCATTER ? call->receive.buffer : call->send.buffer;
    if (may_be_in_place && (marked == MPI_IN_PLACE || is_one_place(call, state->rank))) {
        part.is_in_place = 1;
        *(call->collective == POLYCAST_SCATTER ? &part.received : &part.sent) = 0;
    }
    return part;
}

/* Whether elements of this type begin where the buffer does, so that NULL cannot be where they are. */
static int begins_at_buffer(MPI_Datatype type) {
    MPI_Aint true_lower, true_extent;
    return PMPI_Type_get_true_extent(type, &true_lower, &true_extent) == MPI_SUCCESS && true_lower == 0;
}

/* What only the stock MPI can say in its own words: a missing buffer, a datatype that was not committed. Of no elements a rank need not say where
 * they are: its own block of an MPI_Allgatherv may be empty. */
static int is_wrong(const struct data *data) {
    if (data->buffer == MPI_IN_PLACE || data->count < 0 || data->type == MPI_DATATYPE_NULL) {
        return 1;
    }
    const int is_missing = !data->buffer && data->count > 0;
    if (door_is_named_type(data->type)) {
        return is_missing;
    }
    return !is_committed(data->type) || (is_missing && begins_at_buffer(data->type));
}

int door_refuses(const struct call *call, const struct communicator *state) {
    const struct part part = part_of(call, state);
#ifdef OPEN_MPI
    int minds_one_place = call->collective == POLYCAST_REDUCE || call->collective == POLYCAST_ALLREDUCE;
#else
    int minds_one_place = 1;
#endif
    const void *marked = call->collective == POLYCAST_SCATTER ? call->receive.buffer : call->send.buffer;
    return (part.sent && is_wrong(&call->send)) || (part.received && is_wrong(&call->receive)) ||
           (part.is_in_place && minds_one_place && marked != MPI_IN_PLACE);
}

/* MPI's own packing reads and writes any memory that the program may give to MPI. */
static int copy_elements(enum direction direction, const struct stretch *stretch, MPI_Aint first,
                         MPI_Count count, char *bytes) {
    char *elements = (char *)stretch->data->buffer + first * stretch->element.extent;
    if (count == 0) {
        return MPI_SUCCESS;
    }
    if (!stretch->element.is_contiguous) {
        return door_convert(direction, elements, count, stretch->data->type, &stretch->element, bytes);
    }
    char *first_byte = elements + stretch->element.true_lower;
    size_t length = (size_t)(count * stretch->element.size);
    if (stretch->memory == HOST_MEMORY) {
        memcpy(direction == TO_PACKED ? bytes : first_byte, direction == TO_PACKED ? first_byte : bytes,
               length);
        return MPI_SUCCESS;
    }
    return direction == TO_PACKED ? door_copy(stretch->memory, bytes, first_byte, length)
                                  : door_copy(stretch->memory, first_byte, bytes, length);
}

/* Blocks between the program's memory and their copy. Of elements that do not fit a block, nothing is said here. What they leave of a
 * block is zero in the copy: other ranks get it. */
static int copy_blocks(enum direction direction, const struct stretch *stretch, int first, int number) {
    /* Wrong elements may have no bytes. */
    MPI_Count size = stretch->element.size, fitting = size > 0 ? (MPI_Count)stretch->bytes / size : 0;
    int error = MPI_SUCCESS;
    for (int block = first; !error && block < first + number; block++) {
        MPI_Count count = stretch->blocks ? door_count_of(stretch->blocks, block) : stretch->data->count;
        MPI_Aint at = stretch->blocks ? door_place_of(stretch->blocks, block)
                                      : (MPI_Aint)(block * stretch->data->count);
        char *copy = (char *)stretch->place + (size_t)block * stretch->bytes;
        count = count < fitting ? count : fitting;
        error = copy_elements(direction, stretch, at, count, copy);
        if (direction == TO_PACKED) {
            const size_t length = (size_t)(count * size);
            memset(copy + length, 0, stretch->bytes - length);
        }
    }
    return error;
}

/* Each byte of it is written before it is read: by `copy_blocks`, or by the runtime. */
static void *room_for(int number, size_t bytes) {
    size_t all;
    return __builtin_mul_overflow((size_t)number, bytes, &all) ? NULL : malloc(all ? all : 1);
}

/* Where the data lies already as the runtime wants it, that is its place; else there is room for a copy. */
static int open_stretch(const struct data *data, const struct blocks *blocks, int number, size_t bytes,
                        struct stretch *stretch) {
    *stretch = (struct stretch){.data = data, .blocks = blocks, .number = number, .bytes = bytes};
    if (number == 0) {
        return MPI_SUCCESS;
    }
    int error = door_look_at_type(data->type, number > 1 ? 2 : data->count, &stretch->element);
    if (error) {
        return error;
    }
    char *first_byte = (char *)data->buffer + stretch->element.true_lower;
    stretch->memory = stretch->element.is_contiguous ? door_memory_of(first_byte) : HOST_MEMORY;
    stretch->place = first_byte;
    stretch->is_copy = !stretch->element.is_contiguous || stretch->memory != HOST_MEMORY || blocks ||
                       (size_t)(data->count * stretch->element.size) != bytes;
    if (stretch->is_copy) {
        stretch->place = room_for(number, bytes);
        error = stretch->place ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    return error;
}

/* After a failure MPI may still send from a copy: it is left to MPI. */
static void close_stretch(struct stretch *stretch, int is_left) {
    if (stretch->is_copy && !is_left) {
        free(stretch->place);
    }
}

/* What this rank contributes stands where it is to be received. */
static int copy_in_place(const struct call *call, const struct communicator *state,
                         const struct stretch *received) {
    int is_own_block = call->collective == POLYCAST_GATHER || call->collective == POLYCAST_ALLGATHER;
    return is_own_block ? copy_blocks(TO_PACKED, received, state->rank, 1)
                        : copy_blocks(TO_PACKED, received, 0, received->number);
}

/* A rank that hands in another length than it says itself takes part, so that nobody waits for it. */
static int has_other_length(const struct call *call, const struct communicator *state,
                            const struct stretch *sent, const struct stretch *received) {
    size_t expected = sent->bytes;
    if (call->blocks) {
        expected = (size_t)(door_count_of(call->blocks, state->rank) * received->element.size);
    } else if (received->number > 0 &&
               (size_t)(received->data->count * received->element.size) != received->bytes) {
        return 1;
    }
    return sent->number > 0 && (size_t)(sent->data->count * sent->element.size) != expected;
}

int door_begin_service(const struct call *call, const struct communicator *state, size_t bytes,
                       struct service *service, int *error) {
    struct stretch *sent = &service->sent, *received = &service->received;
    *service = (struct service){.call = *call, .state = state, .part = part_of(call, state)};
    if (door_is_revoked(state)) {
        return 0;
    }
    if (service->part.sent || service->part.received) {
        door_look_for_devices();
    }
    *error = open_stretch(&service->call.send, NULL, service->part.sent, bytes, sent);
    if (!*error) {
        *error = open_stretch(&service->call.receive, call->blocks, service->part.received, bytes, received);
    }
    if (!*error && sent->is_copy) {
        *error = copy_blocks(TO_PACKED, sent, 0, sent->number);
    }
    if (!*error && service->part.is_in_place && received->is_copy) {
        *error = copy_in_place(call, state, received);
    }
    return 1;
}

static int unpack(const struct service *service) {
    const struct stretch *received = &service->received;
    return received->is_copy ? copy_blocks(FROM_PACKED, received, 0, received->number) : MPI_SUCCESS;
}

static int end_unpacked(struct service *service, int error, int *result) {
    struct stretch *sent = &service->sent, *received = &service->received;
    const int is_left = error && error != POLYCAST_ERROR_SIZE;
    if (!error && has_other_length(&service->call, service->state, sent, received)) {
        error = POLYCAST_ERROR_SIZE;
    }
    close_stretch(sent, is_left);
    close_stretch(received, is_left);
    if (error && door_is_revoked(service->state)) {
        return 0;
    }
    *result = error ? report_error(service->call.comm, error) : MPI_SUCCESS;
    return 1;
}

int door_end_service(struct service *service, int error, int *result) {
    return end_unpacked(service, error ? error : unpack(service), result);
}

int door_serve(const struct call *call, const struct communicator *state, struct polycast_plan *plan,
               size_t bytes, int *result) {
    struct service service;
    int error;
    if (!door_begin_service(call, state, bytes, &service, &error)) {
        polycast_plan_free(plan);
        return 0;
    }
    if (!error) {
        error = polycast_run(plan, service.sent.place, service.received.place);
    }
    if (!error) {
        error = unpack(&service);
    }
    /* After the unpacking, which is timed with the call. Before an error is told: the program's handler may free the communicator. */
    polycast_plan_free(plan);
    return end_unpacked(&service, error, result);
}
