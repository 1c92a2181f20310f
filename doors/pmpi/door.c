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
#include <string.h>

#include "calls.h"
#include "preload.h"

static struct entries stock;

int door_stock_broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    return stock.Bcast(buffer, count, (handle)type, root, (handle)comm);
}

int door_stock_allgather(const void *mine, void *all, int count, MPI_Datatype type, MPI_Comm comm) {
    return stock.Allgather(mine, count, (handle)type, all, count, (handle)type, (handle)comm);
}

int door_stock_reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm) {
    return stock.Reduce(mine, all, count, (handle)type, (handle)op, root, (handle)comm);
}

int door_stock_allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op,
                         MPI_Comm comm) {
    return stock.Allreduce(mine, all, count, (handle)type, (handle)op, (handle)comm);
}

int door_stock_barrier(MPI_Comm comm) {
    return stock.Barrier((handle)comm);
}

int door_stock_call(const struct call *call) {
    const struct data *send = &call->send, *receive = &call->receive;
    const int sent = (int)send->count, received = (int)receive->count, root = call->root;
    const handle on = (handle)call->comm, send_type = (handle)send->type,
                 receive_type = (handle)receive->type, op = (handle)call->op;
    switch (call->collective) {
    case POLYCAST_BROADCAST:
        return stock.Bcast(receive->buffer, received, receive_type, root, on);
    case POLYCAST_SCATTER:
        return stock.Scatter(send->buffer, sent, send_type, receive->buffer, received, receive_type, root,
                             on);
    case POLYCAST_GATHER:
        return stock.Gather(send->buffer, sent, send_type, receive->buffer, received, receive_type, root, on);
    case POLYCAST_ALLGATHER:
        return stock.Allgather(send->buffer, sent, send_type, receive->buffer, received, receive_type, on);
    case POLYCAST_ALLTOALL:
        return stock.Alltoall(send->buffer, sent, send_type, receive->buffer, received, receive_type, on);
    case POLYCAST_BARRIER:
        return stock.Barrier(on);
    case POLYCAST_REDUCE:
        return stock.Reduce(send->buffer, receive->buffer, received, receive_type, op, root, on);
    case POLYCAST_ALLREDUCE:
        return stock.Allreduce(send->buffer, receive->buffer, received, receive_type, op, on);
    default:
        return MPI_ERR_INTERN;
    }
}

int door_stock_of_bytes(const polycast_call *call, const void *send, void *receive, MPI_Comm comm) {
    const int bytes = (int)call->bytes, words = (int)(call->bytes / sizeof(uint64_t)), root = call->root;
    const handle on = (handle)comm, byte = (handle)MPI_BYTE, word = (handle)MPI_UINT64_T,
                 sum = (handle)MPI_SUM;
    switch (call->collective) {
    case POLYCAST_BROADCAST:
        return stock.Bcast(receive, bytes, byte, root, on);
    case POLYCAST_SCATTER:
        return stock.Scatter(send, bytes, byte, receive, bytes, byte, root, on);
    case POLYCAST_GATHER:
        return stock.Gather(send, bytes, byte, receive, bytes, byte, root, on);
    case POLYCAST_ALLGATHER:
        return stock.Allgather(send, bytes, byte, receive, bytes, byte, on);
    case POLYCAST_ALLTOALL:
        return stock.Alltoall(send, bytes, byte, receive, bytes, byte, on);
    case POLYCAST_BARRIER:
        return stock.Barrier(on);
    case POLYCAST_REDUCE:
        return stock.Reduce(send, receive, words, word, sum, root, on);
    case POLYCAST_ALLREDUCE:
        return stock.Allreduce(send, receive, words, word, sum, on);
    default:
        return MPI_ERR_INTERN;
    }
}

static inline struct outcome handle_Bcast(void *buffer, MPI_Count count, handle type, int root, handle comm) {
    const struct data data = {buffer, count, (MPI_Datatype)type};
    const struct call call = {POLYCAST_BROADCAST, root, (MPI_Comm)comm, data, data, NULL, MPI_OP_NULL};
    return outcome_of(&call, MPI_OP_NULL, NULL);
}

static inline struct outcome handle_Barrier(handle comm) {
    const struct call call = {.collective = POLYCAST_BARRIER, .comm = (MPI_Comm)comm};
    return outcome_of(&call, MPI_OP_NULL, NULL);
}

/* Blocks of all ranks are sent, or received, or both. */
#define BLOCKS_OF(which, root)                                                                               \
    const struct call call = {which,                                                                         \
                              root,                                                                          \
                              (MPI_Comm)comm,                                                                \
                              {(void *)send, send_count, (MPI_Datatype)send_type},                           \
                              {receive, receive_count, (MPI_Datatype)receive_type},                          \
                              NULL,                                                                          \
                              MPI_OP_NULL};                                                                  \
    return outcome_of(&call, MPI_OP_NULL, NULL)

static inline struct outcome handle_Scatter(const void *send, MPI_Count send_count, handle send_type,
                                            void *receive, MPI_Count receive_count, handle receive_type,
                                            int root, handle comm) {
    BLOCKS_OF(POLYCAST_SCATTER, root);
}

static inline struct outcome handle_Gather(const void *send, MPI_Count send_count, handle send_type,
                                           void *receive, MPI_Count receive_count, handle receive_type,
                                           int root, handle comm) {
    BLOCKS_OF(POLYCAST_GATHER, root);
}

static inline struct outcome handle_Allgather(const void *send, MPI_Count send_count, handle send_type,
                                              void *receive, MPI_Count receive_count, handle receive_type,
                                              handle comm) {
    BLOCKS_OF(POLYCAST_ALLGATHER, 0);
}

static inline struct outcome handle_Alltoall(const void *send, MPI_Count send_count, handle send_type,
                                             void *receive, MPI_Count receive_count, handle receive_type,
                                             handle comm) {
    BLOCKS_OF(POLYCAST_ALLTOALL, 0);
}

static inline struct outcome handle_reduction(uint32_t which, const void *send, void *receive,
                                              MPI_Count count, handle type, handle op, int root,
                                              handle comm) {
    const struct call call = {which,
                              root,
                              (MPI_Comm)comm,
                              {(void *)send, count, (MPI_Datatype)type},
                              {receive, count, (MPI_Datatype)type},
                              NULL,
                              (MPI_Op)op};
    struct reduction reduction;
    return outcome_of(&call, (MPI_Op)op, &reduction);
}

static inline struct outcome handle_Reduce(const void *send, void *receive, MPI_Count count, handle type,
                                           handle op, int root, handle comm) {
    return handle_reduction(POLYCAST_REDUCE, send, receive, count, type, op, root, comm);
}

static inline struct outcome handle_Allreduce(const void *send, void *receive, MPI_Count count, handle type,
                                              handle op, handle comm) {
    return handle_reduction(POLYCAST_ALLREDUCE, send, receive, count, type, op, 0, comm);
}

static struct outcome handle_allgatherv(const void *send, MPI_Count send_count, handle send_type,
                                        void *receive, const void *receive_counts, const void *places,
                                        handle receive_type, handle comm, int are_wide) {
    const struct call call = {.collective = POLYCAST_ALLGATHER,
                              .comm = (MPI_Comm)comm,
                              .send = {(void *)send, send_count, (MPI_Datatype)send_type},
                              .receive = {receive, 0, (MPI_Datatype)receive_type}};
    return outcome_of_blocks(call, (struct blocks){receive_counts, places, are_wide, 0});
}

/* Only counted. What stock would refuse is not. */
static inline struct outcome left_unserved(uint32_t function, uint32_t form, MPI_Count count, handle type) {
    MPI_Count size;
    if (count >= 0 && (MPI_Datatype)type != MPI_DATATYPE_NULL &&
        PMPI_Type_size_x((MPI_Datatype)type, &size) == MPI_SUCCESS && size >= 0) {
        polycast_count_unserved(function, form, (uint64_t)size * (uint64_t)count);
    }
    return (struct outcome){0};
}

/* In place of names that are not used. A scatter is counted by what a rank gets, the others by what it hands in. */
#define handle_Ibcast(buffer, count, type, ...)                                                              \
    left_unserved(POLYCAST_BROADCAST, POLYCAST_NONBLOCKING, count, type)
#define handle_Bcast_init(buffer, count, type, ...)                                                          \
    left_unserved(POLYCAST_BROADCAST, POLYCAST_PERSISTENT, count, type)
#define handle_Iscatter(send, send_count, send_type, receive, receive_count, receive_type, ...)              \
    left_unserved(POLYCAST_SCATTER, POLYCAST_NONBLOCKING, receive_count, receive_type)
#define handle_Scatter_init(send, send_count, send_type, receive, receive_count, receive_type, ...)          \
    left_unserved(POLYCAST_SCATTER, POLYCAST_PERSISTENT, receive_count, receive_type)
#define handle_Igather(send, count, type, ...)                                                               \
    left_unserved(POLYCAST_GATHER, POLYCAST_NONBLOCKING, count, type)
#define handle_Gather_init(send, count, type, ...)                                                           \
    left_unserved(POLYCAST_GATHER, POLYCAST_PERSISTENT, count, type)
#define handle_Iallgather(send, send_count, send_type, receive, count, type, ...)                            \
    left_unserved(POLYCAST_ALLGATHER, POLYCAST_NONBLOCKING, count, type)
#define handle_Allgather_init(send, send_count, send_type, receive, count, type, ...)                        \
    left_unserved(POLYCAST_ALLGATHER, POLYCAST_PERSISTENT, count, type)
#define handle_Iallgatherv(send, count, type, ...)                                                           \
    left_unserved(POLYCAST_ALLGATHERV, POLYCAST_NONBLOCKING, count, type)
#define handle_Allgatherv_init(send, count, type, ...)                                                       \
    left_unserved(POLYCAST_ALLGATHERV, POLYCAST_PERSISTENT, count, type)
#define handle_Ialltoall(send, send_count, send_type, receive, count, type, ...)                             \
    left_unserved(POLYCAST_ALLTOALL, POLYCAST_NONBLOCKING, count, type)
#define handle_Alltoall_init(send, send_count, send_type, receive, count, type, ...)                         \
    left_unserved(POLYCAST_ALLTOALL, POLYCAST_PERSISTENT, count, type)
#define handle_Ireduce(send, receive, count, type, ...)                                                      \
    left_unserved(POLYCAST_REDUCE, POLYCAST_NONBLOCKING, count, type)
#define handle_Reduce_init(send, receive, count, type, ...)                                                  \
    left_unserved(POLYCAST_REDUCE, POLYCAST_PERSISTENT, count, type)
#define handle_Iallreduce(send, receive, count, type, ...)                                                   \
    left_unserved(POLYCAST_ALLREDUCE, POLYCAST_NONBLOCKING, count, type)
#define handle_Allreduce_init(send, receive, count, type, ...)                                               \
    left_unserved(POLYCAST_ALLREDUCE, POLYCAST_PERSISTENT, count, type)
#define handle_Ibarrier(...) left_unserved(POLYCAST_BARRIER, POLYCAST_NONBLOCKING, 0, (handle)MPI_BYTE)
#define handle_Barrier_init(...) left_unserved(POLYCAST_BARRIER, POLYCAST_PERSISTENT, 0, (handle)MPI_BYTE)
/* How wide its arrays are is known where it is used. */
#define handle_Allgatherv(...) handle_allgatherv(__VA_ARGS__, IS_WIDE)

/* Of a call that failed the time says nothing, and its error handler may have freed the communicator. */
static inline int after_stock(int result, const struct communicator *timed) {
    if (timed && result == MPI_SUCCESS) {
        polycast_end_of_stock(timed->runtime);
    }
    return result;
}

/* Both widths of a function have the same handler. */
#define DOOR(function, handler, parameters, names, is_wide)                                                  \
    static int door_##function parameters {                                                                  \
        enum { IS_WIDE = is_wide };                                                                          \
        const struct outcome outcome = handler names;                                                        \
        return outcome.is_served ? outcome.result : after_stock(stock.function names, outcome.timed);        \
    }
#define DOOR_INT(name, parameters, names, fits) DOOR(name, handle_##name, parameters, names, 0)
#define DOOR_C(name, parameters, names, fits) DOOR(name##_c, handle_##name, parameters, names, 1)
POLYCAST_ENTRIES(DOOR_INT, DOOR_C)

static int end(ending_function *stock_ending, void *comm) {
    const MPI_Comm before = door_going(*(MPI_Comm *)comm);
    const int result = stock_ending(comm);
    door_going(before);
    return result;
}

/* Local, so a communicator that has had no broadcast is not attached for it: its broadcasts are stock's so far. */
static int door_choice(const char *collective, handle comm, int64_t bytes, char *text, int size) {
    static const char *const names[] = POLYCAST_COLLECTIVE_NAMES;
    const uint32_t count = sizeof names / sizeof *names;
    uint32_t which = 0;
    while (which < count && strcmp(collective, names[which]) != 0) {
        which++;
    }
    if (which == count) {
        return -1;
    }
    struct communicator *state = NULL;
    if (bytes >= 0 && size > 0 && door_known_communicator((MPI_Comm)comm, &state) == KNOWN &&
        state->runtime) {
        return polycast_name_choice(state->runtime, which, (size_t)bytes, text, (size_t)size);
    }
    if (size > 0) {
        snprintf(text, (size_t)size, "stock");
    }
    return 0;
}

/* As polycast_set; from then on ranks ask each other what is set when a communicator is met. */
static int configure(const char *name, const char *value) {
    const int result = polycast_set(name, value);
    int has_begun = 0;
    PMPI_Initialized(&has_begun);
    if (result == 0 && has_begun) {
        __atomic_store_n(&door_attaches_together, 1, __ATOMIC_RELAXED);
    }
    return result;
}

static void aborting(void) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    polycast_aborting(rank);
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
#define SERVED(name, parameters, names, fits) .name = door_##name,
#define SERVED_C(name, parameters, names, fits) SERVED(name##_c, parameters, names, fits)
    *served = (struct served){.entries = {POLYCAST_ENTRIES(SERVED, SERVED_C)},
                              .configure = configure,
                              .choice = door_choice,
                              .window_made = polycast_window_made,
                              .end = end,
                              .aborting = aborting,
                              .begin = door_begin,
                              .build_identity = polycast_build_identity()};
}
