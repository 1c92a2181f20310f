/*
 * Nonblocking and persistent calls: requests of Open MPI's, which go on whenever Open MPI waits for anything.
 *
 *   start ──▶ under way ──progress, by Open MPI's progress function──▶ ended ──▶ the program is told by MPI_Wait or MPI_Test
 *
 * A persistent one that polycast does not serve this time is started below us, and its end is seen in the same way.
 */
#define _GNU_SOURCE
#include "module.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_base_util.h"
#include "opal/runtime/opal_progress.h"

/* Open MPI keeps datatypes and operations for as long as they are needed in requests of this kind. */
typedef struct polycast_request {
    ompi_coll_base_nbc_request_t super;
    polycast_module_t *module;
    struct flight *flight;         /* under way by polycast; NULL: it is not */
    struct polycast_request *next; /* of those that are under way */
    struct call call;              /* of a persistent one, as it was made */
    struct blocks blocks;
    MPI_Op op;
    ompi_request_t *below; /* the same of the one below us; NULL: it is not persistent */
} polycast_request_t;

OBJ_CLASS_DECLARATION(polycast_request_t);
OBJ_CLASS_INSTANCE(polycast_request_t, ompi_coll_base_nbc_request_t, NULL, NULL);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static polycast_request_t *under_way;
static _Thread_local int is_progressing;

static void add(polycast_request_t *request) {
    pthread_mutex_lock(&lock);
    request->next = under_way;
    __atomic_store_n(&under_way, request, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* Without waiting for a thread that is in the runtime for the same communicator: that one lets all its calls go on. */
static int has_ended(polycast_request_t *request, int *result) {
    if (!request->flight) {
        ompi_request_t *below = request->below;
        const int is_over = REQUEST_COMPLETE(below);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        *result = below->req_status.MPI_ERROR;
        return is_over;
    }
    int is_over = 0;
    if (try_enter(request->module)) {
        is_over = polycast_entrance->has_ended(request->flight, result);
        leave(request->module);
    }
    return is_over;
}

static void tell(polycast_request_t *request, int result) {
    ompi_request_t *told = &request->super.super;
    if (!request->flight) {
        request->below->req_state = OMPI_REQUEST_INACTIVE;
    }
    request->flight = NULL;
    told->req_status.MPI_ERROR = result;
    ompi_request_complete(told, true);
}

/* Open MPI calls this often, and mostly for nothing. */
static int progress(void) {
    polycast_request_t *ended = NULL;
    int count = 0;
    if (!__atomic_load_n(&under_way, __ATOMIC_ACQUIRE) || is_progressing ||
        pthread_mutex_trylock(&lock) != 0) {
        return 0;
    }
    is_progressing = 1;
    for (polycast_request_t **place = &under_way; *place;) {
        polycast_request_t *request = *place;
        int result;
        if (has_ended(request, &result)) {
            request->super.super.req_status.MPI_ERROR = result;
            __atomic_store_n(place, request->next, __ATOMIC_RELEASE);
            request->next = ended;
            ended = request;
        } else {
            place = &request->next;
        }
    }
    is_progressing = 0;
    pthread_mutex_unlock(&lock);
    /* Who is told may start the next. */
    while (ended) {
        polycast_request_t *request = ended;
        ended = request->next;
        tell(request, request->super.super.req_status.MPI_ERROR);
        count++;
    }
    return count;
}

static void register_progress(void) {
    opal_progress_register(progress);
}

static int free_request(ompi_request_t **request) {
    polycast_request_t *ours = (polycast_request_t *)*request;
    if (ours->below) {
        ompi_request_free(&ours->below);
    }
    OBJ_RELEASE(ours->module);
    OMPI_REQUEST_FINI(*request);
    OBJ_RELEASE(ours);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static polycast_request_t *new_request(polycast_module_t *module, MPI_Comm comm, bool is_persistent) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    polycast_request_t *ours = OBJ_NEW(polycast_request_t);
    if (!ours) {
        return NULL;
    }
    pthread_once(&once, register_progress);
    ompi_request_t *request = &ours->super.super;
    OMPI_REQUEST_INIT(request, is_persistent);
    request->req_type = OMPI_REQUEST_COLL;
    request->req_status = (ompi_status_public_t){.MPI_ERROR = MPI_SUCCESS};
    request->req_mpi_object.comm = comm;
    request->req_free = free_request;
    request->req_cancel = NULL;
    ours->flight = NULL;
    ours->below = NULL;
    ours->module = module;
    OBJ_RETAIN(module);
    return ours;
}

int polycast_start_request(polycast_module_t *module, const struct call *call, MPI_Op op,
                           ompi_request_t **request, int *result) {
    enter(module);
    struct flight *flight = polycast_entrance->start(call, op, POLYCAST_NONBLOCKING, result);
    leave(module);
    if (!flight) {
        return *result != MPI_SUCCESS;
    }
    polycast_request_t *ours = new_request(module, call->comm, false);
    if (!ours) {
        /* Nobody could be told of its end. */
        for (int is_over = 0; !is_over; opal_progress()) {
            enter(module);
            is_over = polycast_entrance->has_ended(flight, result);
            leave(module);
        }
        *request = &ompi_request_empty;
        return 1;
    }
    ours->flight = flight;
    ours->super.super.req_state = OMPI_REQUEST_ACTIVE;
    *request = &ours->super.super;
    add(ours);
    return 1;
}

/* MPI_Start: in the same order on all ranks, as collective calls are. */
static int start_again(size_t count, ompi_request_t **requests) {
    for (size_t i = 0; i < count; i++) {
        polycast_request_t *ours = (polycast_request_t *)requests[i];
        int result;
        requests[i]->req_complete = REQUEST_PENDING;
        requests[i]->req_state = OMPI_REQUEST_ACTIVE;
        enter(ours->module);
        ours->flight = polycast_entrance->start(&ours->call, ours->op, POLYCAST_PERSISTENT, &result);
        leave(ours->module);
        if (!ours->flight && result == MPI_SUCCESS) {
            result = ours->below->req_start(1, &ours->below);
        }
        if (result != MPI_SUCCESS) {
            requests[i]->req_complete = REQUEST_COMPLETED;
            requests[i]->req_state = OMPI_REQUEST_INACTIVE;
            return result;
        }
        add(ours);
    }
    return OMPI_SUCCESS;
}

int polycast_make_persistent(polycast_module_t *module, const struct call *call, MPI_Op op,
                             ompi_request_t *below, ompi_request_t **request) {
    polycast_request_t *ours = new_request(module, call->comm, true);
    if (!ours) {
        ompi_request_free(&below);
        *request = MPI_REQUEST_NULL;
        return MPI_ERR_NO_MEM;
    }
    ours->super.super.req_start = start_again;
    ours->call = *call;
    if (call->blocks) {
        ours->blocks = *call->blocks;
        ours->call.blocks = &ours->blocks;
    }
    ours->op = op;
    ours->below = below;
    enter(module);
    polycast_entrance->prepare(&ours->call, op);
    leave(module);
    *request = &ours->super.super;
    return OMPI_SUCCESS;
}

/* MPI_Comm_idup makes such calls at any time, while another call is made elsewhere: they are left below. */
int polycast_is_programs(const void *caller, const char *function, const void **known) {
    Dl_info info;
    if (__atomic_load_n(known, __ATOMIC_RELAXED) == caller) {
        return 1;
    }
    if (!dladdr(caller, &info) || !info.dli_sname) {
        return 0;
    }
    const char *name = info.dli_sname + (*info.dli_sname == 'P');
    const int is_it = strcmp(name, function) == 0;
    if (is_it) {
        __atomic_store_n(known, caller, __ATOMIC_RELAXED);
    }
    return is_it;
}

static int is_any_complete(MPI_Request *requests, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        if (requests[i] != MPI_REQUEST_NULL && REQUEST_COMPLETE(requests[i])) {
            return 1;
        }
    }
    return 0;
}

/* Within Open MPI's progress Open MPI works already. */
int polycast_has_completed(MPI_Request *requests, uint32_t count) {
    if (!is_any_complete(requests, count) && !is_progressing) {
        opal_progress();
    }
    return is_any_complete(requests, count);
}

void polycast_wait_for_flights(const struct communicator *state) {
    while (__atomic_load_n(&state->flights, __ATOMIC_ACQUIRE) > 0) {
        opal_progress();
    }
}
