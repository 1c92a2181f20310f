/*
 * A collective in MPI's words, as stretches of bytes for the runtime: where they lie, whether they must be packed or copied, and
 * what is said of errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"

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

/* The program's own call, and both sizes, for MPI's error names neither. */
static void say_lengths(const struct call *call, const struct communicator *state, size_t given,
                        size_t room) {
    static const char *const names[] = {"Bcast",    "Scatter", "Gather", "Allgather",
                                        "Alltoall", "Barrier", "Reduce", "Allreduce"};
    static int is_said;
    if (!__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED)) {
        fprintf(
            stderr,
            "polycast: error: MPI_%s%s: rank %d has %zu bytes for a block of %zu bytes. MPI wants them to be "
            "equal; where there is less room the call ends with an error. Some MPIs tolerate it: "
            "POLYCAST=off leaves all calls to the MPI\n",
            names[call->collective & 7], call->blocks ? "v" : "", state->rank, given, room);
    }
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

/* How many of a block's elements are the program's, on a rank whose own block is shorter than it says itself: `own` bytes. So are others' then,
 * unless they have bytes beyond; what nobody sent is not written. */
static MPI_Count elements_that_came(const struct stretch *stretch, int block, MPI_Count count,
                                    const char *copy) {
    const MPI_Count size = stretch->element.size, shorter = ((MPI_Count)stretch->own + size - 1) / size;
    if (count <= shorter || stretch->blocks) {
        return block == stretch->rank && count > shorter ? shorter : count;
    }
    for (size_t at = stretch->own; at < stretch->bytes && block != stretch->rank; at++) {
        if (copy[at]) {
            return count;
        }
    }
    return shorter;
}

/* Blocks between the program's memory and their copy. Of elements that do not fit a block, nothing is said here. What they leave of a
 * block is zero in the copy: other ranks get it. */
static int copy_blocks(enum direction direction, const struct stretch *stretch, int first, int number) {
    if (stretch->is_nothing) {
        return MPI_SUCCESS;
    }
    /* Wrong elements may have no bytes. */
    MPI_Count size = stretch->element.size, fitting = size > 0 ? (MPI_Count)stretch->bytes / size : 0;
    int error = MPI_SUCCESS;
    for (int block = first; !error && block < first + number; block++) {
        MPI_Count count = stretch->blocks ? door_count_of(stretch->blocks, block) : stretch->data->count;
        MPI_Aint at = stretch->blocks ? door_place_of(stretch->blocks, block)
                                      : (MPI_Aint)(block * stretch->data->count);
        char *copy = (char *)stretch->place + (size_t)block * stretch->bytes;
        count = count < fitting ? count : fitting;
        if (direction == FROM_PACKED && stretch->own) {
            count = elements_that_came(stretch, block, count, copy);
        }
        error = copy_elements(direction, stretch, at, count, copy);
        if (direction == TO_PACKED) {
            const size_t length = (size_t)(count * size);
            memset(copy + length, 0, stretch->bytes - length);
        }
    }
    return error;
}

/* Each byte of it is written before it is read: by `copy_blocks`, or by the runtime; `as_zeros`: it need not be. */
static void *room_for(int number, size_t bytes, int as_zeros) {
    size_t all;
    if (__builtin_mul_overflow((size_t)number, bytes, &all)) {
        return NULL;
    }
    return as_zeros ? calloc(all ? all : 1, 1) : malloc(all ? all : 1);
}

/* Where the data lies already as the runtime wants it, that is its place; else there is room for a copy. */
static int open_stretch(const struct data *data, const struct blocks *blocks, int number, size_t bytes,
                        struct stretch *stretch) {
    stretch->data = data;
    stretch->blocks = blocks;
    stretch->number = number;
    stretch->bytes = bytes;
    if (number == 0) {
        return MPI_SUCCESS;
    }
    if (stretch->is_nothing) {
        stretch->is_copy = 1;
        stretch->place = room_for(number, bytes, 1);
        return stretch->place ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    int error = door_look_at_type(data->type, number > 1 ? 2 : data->count, &stretch->element);
    if (error) {
        return error;
    }
    char *first_byte = (char *)data->buffer + stretch->element.true_lower;
    stretch->memory = stretch->element.is_contiguous ? door_memory_of(first_byte) : HOST_MEMORY;
    stretch->place = first_byte;
    stretch->is_copy = !stretch->element.is_contiguous || stretch->memory != HOST_MEMORY || blocks ||
                       stretch->own || (size_t)(data->count * stretch->element.size) != bytes;
    if (stretch->is_copy) {
        stretch->place = room_for(number, bytes, stretch->own != 0);
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

/* Of a rank that hands in less than it says itself, and receives blocks: how much; else 0. */
static size_t shorter_block(const struct service *service, size_t bytes) {
    const struct call *call = &service->call;
    const int is_of_ranks = call->collective == POLYCAST_GATHER || call->collective == POLYCAST_ALLGATHER ||
                            call->collective == POLYCAST_ALLTOALL;
    MPI_Count size;
    if (!is_of_ranks || !service->part.sent || !service->part.received ||
        PMPI_Type_size_x(call->send.type, &size) != MPI_SUCCESS) {
        return 0;
    }
    const size_t sent = (size_t)(call->send.count * size);
    return sent < bytes ? sent : 0;
}

/* Whether this rank hands in more than it says itself that there is room for, or has less room than it says: `given` and `room` are filled in. It has
 * taken part with what fits. */
static int has_no_room(const struct service *service, size_t *given, size_t *room) {
    const struct stretch *sent = &service->sent, *received = &service->received;
    /* In place nothing is handed in; an MPI_Allgatherv's block has no other length than the one that is said of it. */
    if (sent->is_nothing || received->is_nothing || (service->call.blocks && sent->number == 0)) {
        return 0;
    }
    *given = sent->number > 0 ? (size_t)(sent->data->count * sent->element.size) : sent->bytes;
    *room = sent->bytes;
    if (service->call.blocks) {
        *room = (size_t)(door_count_of(service->call.blocks, service->state->rank) * received->element.size);
    } else if (received->number > 0) {
        *room = (size_t)(received->data->count * received->element.size);
    }
    return (sent->number > 0 || received->number > 0) && *given > *room;
}

/* What is wrong to this rank alone, and what the MPI says of it. What it refuses is neither combined nor received, and nothing is in place then. */
static void judge(struct service *service, size_t bytes) {
    struct part *part = &service->part;
    const struct wrong wrong = door_wrong(&service->call, part);
    if (!wrong.send && !wrong.receive && !wrong.place) {
        return;
    }
    service->refusal = door_refusal(&service->call, part, wrong, bytes);
    if (service->refusal && wrong.place) {
        part->is_in_place = 0;
        const int blocks = service->call.collective == POLYCAST_ALLTOALL ? service->state->size : 1;
        *(service->call.collective == POLYCAST_SCATTER ? &part->received : &part->sent) = blocks;
    }
    service->sent.is_nothing = wrong.send;
    service->received.is_nothing = wrong.receive || service->refusal;
}

void door_end_of_wrong(const struct call *call, const struct communicator *state, size_t bytes) {
    struct service service = {.call = *call, .state = state, .part = part_of(call, state)};
    judge(&service, bytes);
}

int door_begin_service(const struct call *call, const struct communicator *state, size_t bytes,
                       struct service *service, int *error) {
    struct stretch *sent = &service->sent, *received = &service->received;
    *service = (struct service){.call = *call, .state = state, .part = part_of(call, state)};
    if (door_is_revoked(state)) {
        return 0;
    }
    judge(service, bytes);
    if (service->part.sent || service->part.received) {
        door_look_for_devices();
    }
    received->rank = state->rank;
    received->own = service->refusal ? 0 : shorter_block(service, bytes);
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
    size_t given, room;
    if (service->refusal && !is_left) {
        error = service->refusal;
    } else if (!error && has_no_room(service, &given, &room)) {
        say_lengths(&service->call, service->state, given, room);
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
