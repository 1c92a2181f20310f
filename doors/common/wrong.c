/*
 * What is wrong with a call to this rank alone: a missing buffer, a type that was not committed, what is sent where it is to be received.
 *
 * The other ranks know nothing of it and are served, so this one takes part, with what fits, and the MPI's error follows. What the MPI says of it
 * is asked on a communicator of this rank alone: the program's own could begin to communicate if the MPI did not mind.
 */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

#include "service.h"

/* A communicator of this rank alone, which returns errors; MPI_COMM_NULL: there is none. */
static MPI_Comm alone = MPI_COMM_NULL;
/* One thread at a time asks there. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static int open_alone(void) {
    if (alone == MPI_COMM_NULL && PMPI_Comm_dup(MPI_COMM_SELF, &alone) == MPI_SUCCESS) {
        PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
    }
    return alone != MPI_COMM_NULL;
}

/* A datatype that was not committed: MPI only tells by refusing it, so it is asked to send and to pack
 * nothing. (Open MPI looks when it sends, MPICH when it packs.) The private communicator returns errors. */
static int is_committed(MPI_Datatype type) {
    char nothing[1];
    int position = 0;
    return PMPI_Send(nothing, 0, type, MPI_PROC_NULL, 0, door_private) == MPI_SUCCESS &&
           PMPI_Pack(nothing, 0, type, nothing, 0, &position, door_private) == MPI_SUCCESS;
}

/* Whether elements of this type have bytes, the first of them where the buffer begins: NULL cannot be where they are. */
static int begins_at_buffer(MPI_Datatype type) {
    MPI_Aint true_lower, true_extent;
    return PMPI_Type_get_true_extent(type, &true_lower, &true_extent) == MPI_SUCCESS && true_lower == 0 &&
           true_extent > 0;
}

/* Of no elements, and of elements without bytes, a rank need not say where they are: its own block of an MPI_Allgatherv may be empty. */
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

struct wrong door_wrong(const struct call *call, const struct part *part) {
    const void *marked = call->collective == POLYCAST_SCATTER ? call->receive.buffer : call->send.buffer;
    return (struct wrong){.send = part->sent && is_wrong(&call->send),
                          .receive = part->received && is_wrong(&call->receive),
                          .place = part->is_in_place && marked != MPI_IN_PLACE};
}

/* The call as a rank makes it that is alone: what other ranks have of it stands in `scrap`, and of counts that are no int nothing matters here but
 * that they are not negative. */
static int call_alone(const struct call *call, const struct part *part, struct wrong wrong, void *scrap) {
    struct call mine = *call;
    mine.comm = alone;
    mine.root = 0;
    mine.blocks = NULL;
    if (call->blocks) {
        mine.receive.count = call->send.count;
    }
    if (call->collective == POLYCAST_BROADCAST) {
        /* All of it is one. */
    } else if (wrong.place) {
        void **other = call->collective == POLYCAST_SCATTER ? &mine.send.buffer : &mine.receive.buffer;
        *other = call->collective == POLYCAST_SCATTER ? call->receive.buffer : call->send.buffer;
    } else if (!part->sent && !part->is_in_place) {
        mine.send = call->receive;
        mine.send.buffer = scrap;
    } else if (!part->received && !part->is_in_place) {
        mine.receive = call->send;
        mine.receive.buffer = scrap;
    }
    mine.send.count = mine.send.count > INT_MAX ? 1 : mine.send.count;
    mine.receive.count = mine.receive.count > INT_MAX ? 1 : mine.receive.count;
    return door_stock_call(&mine);
}

/* A broadcast of one rank moves nothing, so the MPI can be asked with any data whether it minds. */
static int broadcast_alone(const struct data *data) {
    const struct call broadcast = {
        .collective = POLYCAST_BROADCAST, .comm = alone, .send = *data, .receive = *data};
    const struct part part = {.sent = 1, .received = 1};
    return call_alone(&broadcast, &part, (struct wrong){0}, NULL);
}

/* Whether the MPI's word on a broadcast of such data must do. A rank that is alone is the root, which may say MPI_IN_PLACE; Open MPI 4.1 crashes on
 * types that are not committed everywhere else. */
static int is_for_broadcast(const struct data *data) {
#ifdef OPEN_MPI
    const int is_not_committed = data->type != MPI_DATATYPE_NULL && data->count >= 0 && data->buffer;
#else
    const int is_not_committed = 0;
#endif
    return data->buffer == MPI_IN_PLACE || is_not_committed;
}

/* The MPI's error about it, MPI_SUCCESS if it does not mind. `is_known`: it does. */
static int ask_alone(const struct call *call, const struct part *part, struct wrong wrong, size_t bytes,
                     int is_known) {
    if (wrong.send || wrong.receive) {
        const struct data *data = wrong.send ? &call->send : &call->receive;
        const int is_last = is_for_broadcast(data);
        const int error = is_known && !is_last ? MPI_ERR_OTHER : broadcast_alone(data);
        if (!error || is_last) {
            return error;
        }
    }
    void *scrap = malloc(bytes ? bytes : 1);
    const int error = scrap ? call_alone(call, part, wrong, scrap) : MPI_ERR_NO_MEM;
    free(scrap);
    return error;
}

static int ends_job(MPI_Comm comm) {
    MPI_Errhandler handler;
    if (PMPI_Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) {
        return 0;
    }
    int is_end = handler == MPI_ERRORS_ARE_FATAL;
#ifdef MPI_ERRORS_ABORT
    is_end = is_end || handler == MPI_ERRORS_ABORT;
#endif
    if (!is_end && handler != MPI_ERRORS_RETURN) {
        PMPI_Errhandler_free(&handler);
    }
    return is_end;
}

/* As if the program's communicator said it. */
static void end_job(const struct call *call, const struct part *part, struct wrong wrong, size_t bytes) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length;
    if (PMPI_Comm_get_name(call->comm, name, &length) == MPI_SUCCESS) {
        PMPI_Comm_set_name(alone, name);
    }
    PMPI_Comm_set_errhandler(alone, MPI_ERRORS_ARE_FATAL);
    ask_alone(call, part, wrong, bytes, 1);
    PMPI_Comm_set_errhandler(alone, MPI_ERRORS_RETURN);
}

/* Which MPIs mind one place is known, but not whether they look at arguments at all. */
static int may_mind_place(const struct call *call) {
#ifdef OPEN_MPI
    return call->collective == POLYCAST_REDUCE || call->collective == POLYCAST_ALLREDUCE;
#else
    (void)call;
    return 1;
#endif
}

int door_refusal(const struct call *call, const struct part *part, struct wrong wrong, size_t bytes) {
    static int is_place_tolerated[8];
    const int is_place_only = !wrong.send && !wrong.receive;
    int *is_tolerated = &is_place_tolerated[call->collective & 7];
    /* Who calls us has asked the MPI. */
    if (!door_reports_errors ||
        (is_place_only && (!may_mind_place(call) || __atomic_load_n(is_tolerated, __ATOMIC_RELAXED)))) {
        return MPI_SUCCESS;
    }
    pthread_mutex_lock(&asking);
    int error = MPI_SUCCESS;
    if (open_alone()) {
        error = ask_alone(call, part, wrong, bytes, 0);
        if (error && ends_job(call->comm)) {
            end_job(call, part, wrong, bytes);
        }
    }
    pthread_mutex_unlock(&asking);
    if (!error && is_place_only) {
        __atomic_store_n(is_tolerated, 1, __ATOMIC_RELAXED);
    }
    return error;
}
