/* A communicator's module, and the calls under way on it. */
#ifndef POLYCAST_MODULE_H
#define POLYCAST_MODULE_H

#include "component.h"

#include <sched.h>

typedef struct polycast_module {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t below; /* what would serve without us; the modules of what we took are kept */
    int is_enabled;
    int is_busy; /* a thread is in the runtime for this communicator */
} polycast_module_t;

OBJ_CLASS_DECLARATION(polycast_module_t);

/* The runtime is called for a communicator by one thread at a time. */
static inline int try_enter(polycast_module_t *module) {
    return !__atomic_exchange_n(&module->is_busy, 1, __ATOMIC_ACQUIRE);
}

/* Whoever lets a call go on is through soon, and no two threads make calls on one communicator. */
static inline void enter(polycast_module_t *module) {
    while (!try_enter(module)) {
        sched_yield();
    }
}

static inline void leave(polycast_module_t *module) {
    __atomic_store_n(&module->is_busy, 0, __ATOMIC_RELEASE);
}

/* requests.c */

/* Starts a call that nobody waits for. 0: the one below is to do it. 1: *result, and *request if that is no error. */
int polycast_start_request(polycast_module_t *module, const struct call *call, MPI_Op op,
                           ompi_request_t **request, int *result);
/* A request by which the call is started as often as the program likes, by `below` where polycast does not serve it. */
int polycast_make_persistent(polycast_module_t *module, const struct call *call, MPI_Op op,
                             ompi_request_t *below, ompi_request_t **request);
/* Whether MPI's function itself has called, and not Open MPI for something of its own. `known` remembers the answer. */
int polycast_is_programs(const void *caller, const char *function, const void **known);

/* For the door. */
int polycast_has_completed(MPI_Request *requests, uint32_t count);
void polycast_wait_for_flights(const struct communicator *state);

#endif
