/*
 * How a call is served, for the two ways in which calls come to a door: the preloaded object's (door.c of doors/pmpi), and that of Open MPI's
 * component (entrance.c of doors/ompi-coll). Written out in both, for most calls go no further.
 */
#ifndef POLYCAST_DOOR_CALLS_H
#define POLYCAST_DOOR_CALLS_H

#include "door.h"

/* Bytes of a block, the same on all ranks; 0 for what is not served. */
static inline size_t bytes_of(MPI_Count count, MPI_Datatype type) {
    MPI_Count size;
    if (PMPI_Type_size_x(type, &size) != MPI_SUCCESS || size <= 0) {
        return 0;
    }
    MPI_Count bytes;
    return __builtin_mul_overflow(size, count, &bytes) ? 0 : (size_t)bytes;
}

/* Whether this rank's arguments are those of the root. `state`: NULL if the communicator is new. In an intercommunicator a root's number is
 * one of the other group. */
static inline int is_root(const struct call *call, const struct communicator *state) {
    int is_inter, rank;
    if (call->root < 0) {
        return call->root == MPI_ROOT;
    }
    if (state && state->size > 0) {
        return state->rank == call->root;
    }
    return PMPI_Comm_test_inter(call->comm, &is_inter) == MPI_SUCCESS && !is_inter &&
           PMPI_Comm_rank(call->comm, &rank) == MPI_SUCCESS && rank == call->root;
}

/* Who has blocks of all ranks tells how long one is; elsewhere that is told by the one block there is. The others' arguments may mean
 * nothing, so nobody may look at them. */
static inline const struct data *telling_data(const struct call *call, const struct communicator *state) {
    switch (call->collective) {
    case POLYCAST_GATHER:
        return is_root(call, state) ? &call->receive : &call->send;
    case POLYCAST_SCATTER:
        return is_root(call, state) ? &call->send : &call->receive;
    default:
        return &call->receive;
    }
}

/* Blocking, and waited for at once; nonblocking; or to be started later, which all ranks prepare together. */
enum when { NOW, AHEAD, PREPARED };

/* A call goes to stock that is not waited for: who made it counts it. */
static inline void count_left(enum when when, uint32_t collective, uint32_t because, uint64_t bytes) {
    if (when == NOW) {
        polycast_count_left(collective, because, bytes);
    }
}

/* A communicator of which nothing is known; NULL: it stays so, and the call is left to stock. Not inlined, as below: it would be there for each
 * function. */
static __attribute__((noinline)) struct communicator *known_from_now_on(const struct call *call,
                                                                        size_t bytes) {
    int ranks;
    const int passes = PMPI_Comm_size(call->comm, &ranks) != MPI_SUCCESS ||
                       polycast_passes(polycast_first_passing(ranks), NULL, call->collective, bytes);
    return passes ? NULL : door_communicator(call->comm);
}

/* A communicator that is new; NULL: it stays so, and the call is left to stock. */
static __attribute__((noinline)) struct communicator *attached_now(const struct call *call, enum when when,
                                                                   size_t bytes, struct communicator *state) {
    /* A call that only starts something must not wait for the other ranks. */
    if (when == AHEAD && __atomic_load_n(&door_attaches_together, __ATOMIC_RELAXED)) {
        return NULL;
    }
    door_end_of_wrong(call, state, bytes);
    state = door_attach(state);
    if (state && !state->runtime) {
        count_left(when, call->collective, state->left_because, bytes);
        return NULL;
    }
    return state;
}

/* How the runtime serves this call; NULL if it is left to stock. Arguments by which this rank does not know what the others call (a root, a count or a
 * type that is none) are for stock, which refuses them at once, and not counted. */
static inline struct polycast_plan *plan_for(const struct call *call, enum when when, MPI_Op op,
                                             struct reduction *reduction, size_t *bytes,
                                             struct communicator **state, struct outcome *outcome) {
    const int is_barrier = call->collective == POLYCAST_BARRIER;
    if (call->comm == MPI_COMM_NULL || (call->root < 0 && call->root != MPI_ROOT)) {
        return NULL;
    }
    const enum known known = door_known_communicator(call->comm, state);
    if (known == OVER) {
        return NULL;
    }
    const struct data *data = telling_data(call, known == KNOWN ? *state : NULL);
    if (!is_barrier && (data->count < 0 || data->type == MPI_DATATYPE_NULL)) {
        return NULL;
    }
    *bytes = is_barrier ? 0 : bytes_of(data->count, data->type);
    if (call->root == MPI_ROOT) {
        count_left(when, call->collective, POLYCAST_BECAUSE_INTERCOMMUNICATOR, *bytes);
        return NULL;
    }
    if (!is_barrier && *bytes == 0) {
        count_left(when, call->collective, POLYCAST_BECAUSE_EMPTY, 0);
        return NULL;
    }
    if (known == UNKNOWN) {
        *state = known_from_now_on(call, *bytes);
        if (!*state) {
            return NULL;
        }
    }
    if (!(*state)->runtime && !(*state)->is_new) {
        count_left(when, call->collective, (*state)->left_because, *bytes);
        return NULL;
    }
    if (call->root >= (*state)->size) {
        return NULL;
    }
    /* From here on calls are counted, also those in which something is wrong to this rank alone: the others make them. */
    if (reduction && !door_combines(data->type, op, *bytes / (size_t)data->count, reduction)) {
        count_left(when, call->collective, POLYCAST_BECAUSE_OPERATION, *bytes);
        return NULL;
    }
    if (when == NOW && polycast_passes((*state)->passing, (*state)->counts, call->collective, *bytes)) {
        return NULL;
    }
    if ((*state)->is_new) {
        *state = attached_now(call, when, *bytes, *state);
        if (!*state) {
            return NULL;
        }
    }
    const polycast_call wanted = {.collective = call->collective,
                                  .root = call->root,
                                  .bytes = *bytes,
                                  .reduction = reduction ? &reduction->known : NULL};
    struct polycast_plan *plan;
    if (when != NOW) {
        polycast_plan_ahead((*state)->runtime, &wanted, when == PREPARED, &plan);
    } else if (polycast_plan((*state)->runtime, &wanted, &plan) == POLYCAST_LEFT_AND_TIMED) {
        outcome->timed = *state;
    }
    return plan;
}

static inline struct outcome outcome_of(const struct call *call, MPI_Op op, struct reduction *reduction) {
    struct outcome outcome = {0};
    struct communicator *state;
    size_t bytes;
    struct polycast_plan *plan = plan_for(call, NOW, op, reduction, &bytes, &state, &outcome);
    if (plan) {
        outcome.is_served = door_serve(call, state, plan, bytes, &outcome.result);
    }
    return outcome;
}

static inline int senders_in(MPI_Comm comm, int *size) {
    int is_inter, error = PMPI_Comm_test_inter(comm, &is_inter);
    return error ? error : is_inter ? PMPI_Comm_remote_size(comm, size) : PMPI_Comm_size(comm, size);
}

/* As if all blocks were as long as the longest, there would be more than twice the data. In bytes, which are the same on all ranks: each
 * may count in elements of a type of its own. */
static inline int are_uneven(size_t longest, size_t all, int ranks) {
    size_t padded;
    return __builtin_mul_overflow(longest, (size_t)ranks, &padded) || padded > 2 * all;
}

/* MPI_Allgatherv. Blocks that differ are served as if all were as long as the longest, unless they are uneven; 0: stock serves. All ranks know
 * the lengths; where something is wrong with them, stock says so. The longest is filled in, and so is in `call` what it says of blocks and of
 * how many elements are received. Where blocks are as MPI_Allgather's, nothing has to be copied. */
static int measure_blocks(struct call *call, enum when when, struct blocks *blocks) {
    struct communicator *state;
    int size;
    if (call->comm == MPI_COMM_NULL || !blocks->counts || !blocks->places ||
        call->receive.type == MPI_DATATYPE_NULL) {
        return 0;
    }
    const enum known known = door_known_communicator(call->comm, &state);
    if (known == OVER) {
        return 0;
    }
    if (known == KNOWN && state->size > 0) {
        size = state->size;
    } else if (senders_in(call->comm, &size) != MPI_SUCCESS) {
        return 0;
    }
    MPI_Count all = 0;
    int are_in_order = 1;
    for (int rank = 0; rank < size; rank++) {
        MPI_Count count = door_count_of(blocks, rank);
        are_in_order &= door_place_of(blocks, rank) == all;
        if (count < 0 || __builtin_add_overflow(all, count, &all)) {
            return 0;
        }
        blocks->longest = count > blocks->longest ? count : blocks->longest;
    }
    const size_t longest = bytes_of(blocks->longest, call->receive.type);
    if (are_uneven(longest, bytes_of(all, call->receive.type), size)) {
        count_left(when, POLYCAST_ALLGATHER, POLYCAST_BECAUSE_UNEVEN, longest);
        return 0;
    }
    call->receive.count = blocks->longest;
    /* None is longer than the average. */
    const int are_alike = are_in_order && all % size == 0 && all / size == blocks->longest;
    call->blocks = are_alike ? NULL : blocks;
    return 1;
}

static struct outcome outcome_of_blocks(struct call call, struct blocks blocks) {
    return measure_blocks(&call, NOW, &blocks) ? outcome_of(&call, MPI_OP_NULL, NULL) : (struct outcome){0};
}

#endif
