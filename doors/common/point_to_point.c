/*
 * What the runtime calls back: messages on the private communicator, and stock collectives before anything is served.
 *
 * Requests live in an array indexed by the runtime's slots, because MPI_Testsome wants them side by side. The
 * runtime keeps slots dense, so the array stays as short as the number of outstanding messages.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "door.h"

MPI_Comm door_private = MPI_COMM_NULL;

static int allgather(void *communicator, const void *mine, void *all, size_t bytes) {
    const struct communicator *state = communicator;
    return door_stock_allgather(mine, all, (int)bytes, MPI_BYTE, state->user);
}

static int stock_broadcast(void *communicator, void *buffer, size_t bytes, int root) {
    const struct communicator *state = communicator;
    return door_stock_broadcast(buffer, (int)bytes, MPI_BYTE, root, state->user);
}

static int sum(void *communicator, uint64_t *values, size_t count) {
    const struct communicator *state = communicator;
    return door_stock_allreduce(MPI_IN_PLACE, values, (int)count, MPI_UINT64_T, MPI_SUM, state->user);
}

static int intersect(void *communicator, uint64_t *words, size_t count) {
    const struct communicator *state = communicator;
    return door_stock_allreduce(MPI_IN_PLACE, words, (int)count, MPI_UINT64_T, MPI_BAND, state->user);
}

static int stock(void *communicator, const polycast_call *call, const void *send, void *receive) {
    const struct communicator *state = communicator;
    return door_stock_of_bytes(call, send, receive, state->user);
}

static int world_ranks(void *communicator, int *ranks) {
    const struct communicator *state = communicator;
    return door_world_ranks(state->user, state->size, ranks) ? MPI_SUCCESS : MPI_ERR_GROUP;
}

/* MPI_Comm_create and not MPI_Comm_dup: a duplicate would call the copy callbacks of the program's
 * attributes. */
static int create_private(void) {
    MPI_Group group;
    int error = PMPI_Comm_group(MPI_COMM_WORLD, &group);
    if (!error) {
        error = PMPI_Comm_create(MPI_COMM_WORLD, group, &door_private);
        PMPI_Group_free(&group);
    }
    return error ? error : PMPI_Comm_set_errhandler(door_private, MPI_ERRORS_RETURN);
}

int door_open_private(void) {
    /* Running out of contexts must not end the job: the handler is the fatal one. */
    MPI_Errhandler handler;
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int is_created = create_private() == MPI_SUCCESS, are_all = 0;
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    PMPI_Errhandler_free(&handler);
    return door_stock_allreduce(&is_created, &are_all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD) == MPI_SUCCESS &&
           are_all;
}

static int grow(struct communicator *state, uint32_t slot) {
    uint32_t capacity = slot < 64 ? 64 : 2 * slot;
    MPI_Request *requests = realloc(state->requests, capacity * sizeof *requests);
    state->requests = requests ? requests : state->requests;
    MPI_Status *statuses = realloc(state->statuses, capacity * sizeof *statuses);
    state->statuses = statuses ? statuses : state->statuses;
    int *indices = realloc(state->indices, capacity * sizeof *indices);
    state->indices = indices ? indices : state->indices;
    unsigned char *is_receive = realloc(state->is_receive, capacity);
    state->is_receive = is_receive ? is_receive : state->is_receive;
    if (!requests || !statuses || !indices || !is_receive) {
        return MPI_ERR_NO_MEM;
    }
    for (uint32_t i = state->slots_capacity; i < capacity; i++) {
        requests[i] = MPI_REQUEST_NULL;
    }
    state->slots_capacity = capacity;
    return MPI_SUCCESS;
}

static int make_room(struct communicator *state, uint32_t slot, int is_receive) {
    int error = slot < state->slots_capacity ? MPI_SUCCESS : grow(state, slot);
    if (!error) {
        state->is_receive[slot] = is_receive != 0;
        if (slot >= state->slots_in_use) {
            state->slots_in_use = slot + 1;
        }
    }
    return error;
}

static int start_send(void *communicator, const void *buffer, size_t bytes, int peer, int tag,
                      uint32_t slot) {
    struct communicator *state = communicator;
    int error = make_room(state, slot, 0);
    return error ? error
                 : PMPI_Isend(buffer, (int)bytes, MPI_BYTE, peer, tag, door_private, &state->requests[slot]);
}

static int start_receive(void *communicator, void *buffer, size_t bytes, int peer, int tag, uint32_t slot) {
    struct communicator *state = communicator;
    int error = make_room(state, slot, 1);
    int source = peer == POLYCAST_ANY_PEER ? MPI_ANY_SOURCE : peer;
    return error
               ? error
               : PMPI_Irecv(buffer, (int)bytes, MPI_BYTE, source, tag, door_private, &state->requests[slot]);
}

/* ULFM's, where the library has it. The private communicator is not revoked with the program's, so its messages would be
 * waited for, for ever. */
int MPIX_Comm_is_revoked(MPI_Comm comm, int *is_revoked) __attribute__((weak));

int door_is_revoked(const struct communicator *state) {
    int is_revoked = 0;
    return MPIX_Comm_is_revoked && state->user != MPI_COMM_NULL &&
           MPIX_Comm_is_revoked(state->user, &is_revoked) == MPI_SUCCESS && is_revoked;
}

/* Open MPI's, where its launcher or the user has set it: `mpi_yield_when_idle`. */
extern bool ompi_mpi_yield_when_idle __attribute__((weak));

int door_gives_way(void) {
    return &ompi_mpi_yield_when_idle && ompi_mpi_yield_when_idle;
}

/* Some libraries keep a request that has failed, and would report it again. */
static void free_failed(MPI_Request *request) {
    if (*request != MPI_REQUEST_NULL) {
        PMPI_Request_free(request);
        *request = MPI_REQUEST_NULL;
    }
}

int (*door_has_completed)(MPI_Request *requests, uint32_t count);

static int poll_requests(void *communicator, polycast_completion *completions, uint32_t *completed) {
    struct communicator *state = communicator;
    int count = 0;
    if (door_has_completed && !door_has_completed(state->requests, state->slots_in_use)) {
        *completed = 0;
        return MPI_SUCCESS;
    }
    if (state->slots_in_use == 0) {
        /* Of no messages MPI_Testsome returns at once. Others may wait for what MPI has to do here. */
        int is_there = 0;
        *completed = 0;
        int error = PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, door_private, &is_there, MPI_STATUS_IGNORE);
        return error || !door_is_revoked(state) ? error : MPI_ERR_COMM;
    }
    int error =
        PMPI_Testsome((int)state->slots_in_use, state->requests, &count, state->indices, state->statuses);
    if (error && error != MPI_ERR_IN_STATUS) {
        return error;
    }
    *completed = 0;
    for (int i = 0; count != MPI_UNDEFINED && i < count; i++) {
        MPI_Status *status = &state->statuses[i];
        /* MPI sets it only where one of them failed. */
        int failed = error ? status->MPI_ERROR : MPI_SUCCESS;
        if (failed == MPI_ERR_PENDING) {
            continue;
        }
        int bytes = 0;
        if (failed) {
            free_failed(&state->requests[state->indices[i]]);
        } else {
            PMPI_Get_count(status, MPI_BYTE, &bytes);
        }
        completions[(*completed)++] = (polycast_completion){
            .slot = (uint32_t)state->indices[i],
            .error = failed,
            .bytes = bytes == MPI_UNDEFINED ? 0 : (size_t)bytes,
        };
    }
    if (*completed == 0 && error) {
        return error;
    }
    if (*completed == 0 && door_is_revoked(state)) {
        return MPI_ERR_COMM;
    }
    while (state->slots_in_use > 0 && state->requests[state->slots_in_use - 1] == MPI_REQUEST_NULL) {
        state->slots_in_use--;
    }
    return MPI_SUCCESS;
}

/* A cancelled receive completes, with or without a message, whatever its sender does; then its buffer is free. Sends
 * cannot be cancelled everywhere: MPI finishes them by itself, and their buffers are left to it. */
static void cancel(void *communicator, const uint32_t *slots, uint32_t count) {
    struct communicator *state = communicator;
    for (uint32_t i = 0; i < count; i++) {
        MPI_Request *request = &state->requests[slots[i]];
        if (*request == MPI_REQUEST_NULL) {
            continue;
        }
        if (state->is_receive[slots[i]]) {
            PMPI_Cancel(request);
            PMPI_Wait(request, MPI_STATUS_IGNORE);
        } else {
            PMPI_Request_free(request);
        }
    }
}

/* Not over MPI_COMM_WORLD: in a reduction that the MPI refused on its root alone the others' messages are still there. */
static int sum_over_world(uint64_t *values, size_t count) {
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return door_stock_reduce(rank == 0 ? MPI_IN_PLACE : values, rank == 0 ? values : NULL, (int)count,
                             MPI_UINT64_T, MPI_SUM, 0,
                             door_private == MPI_COMM_NULL ? MPI_COMM_WORLD : door_private);
}

#ifdef MPICH_NUMVERSION
/* In integers: the program may have floating-point traps. */
static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
#endif

/* MPICH over UCX hangs in MPI_Finalize, without polycast, too, when a rank waits there for the answer of another one that has
 * gone on to wait for the launcher and does not look at messages any more. So all answer for a while. */
static void take_leave(void) {
#ifdef MPICH_NUMVERSION
    const int64_t milliseconds = 100;
    door_stock_barrier(MPI_COMM_WORLD);
    for (const int64_t until = now_ms() + milliseconds; now_ms() < until; sched_yield()) {
        int is_there;
        PMPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_SELF, &is_there, MPI_STATUS_IGNORE);
    }
#endif
}

polycast_door door_functions = {
    .interface_version = POLYCAST_INTERFACE_VERSION,
    .allgather = allgather,
    .broadcast = stock_broadcast,
    .sum = sum,
    .intersect = intersect,
    .stock = stock,
    .world_ranks = world_ranks,
    .isend = start_send,
    .irecv = start_receive,
    .poll = poll_requests,
    .cancel = cancel,
    .close = door_close,
    .sum_over_world = sum_over_world,
    .take_leave = take_leave,
};
