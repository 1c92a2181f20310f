/*
 * A communicator's module: its collectives, each by polycast, or by the component that would serve it otherwise.
 *
 * Open MPI enables the modules of a communicator in the order of their priorities, and then takes from each what it offers. So what the
 * communicator has when we are enabled is what would serve it without us.
 */
#include "module.h"

#include "collectives.h"

/* A collective below us, and the runtime's own by way of it, may be made of others, which come here: what a thread calls meanwhile is none of
 * the program's calls. */
static _Thread_local int is_inside;

/* Before MPI has begun, and where not all ranks have polycast, the one below us serves. */
#define BLOCKING(name, parameters, names, described, op)                                                     \
    static int name(INSIDE parameters, mca_coll_base_module_t *module) {                                     \
        polycast_module_t *ours = (polycast_module_t *)module;                                               \
        const mca_coll_base_comm_coll_t *below = &ours->below;                                               \
        if (is_inside || !polycast_entrance) {                                                               \
            return below->coll_##name(INSIDE names, below->coll_##name##_module);                            \
        }                                                                                                    \
        const struct call call = {INSIDE described};                                                         \
        is_inside = 1;                                                                                       \
        enter(ours);                                                                                         \
        const struct outcome outcome = polycast_entrance->serve(&call, op);                                  \
        leave(ours);                                                                                         \
        int result = outcome.is_served ? outcome.result                                                      \
                                       : below->coll_##name(INSIDE names, below->coll_##name##_module);      \
        if (outcome.timed && result == MPI_SUCCESS) {                                                        \
            enter(ours);                                                                                     \
            polycast_entrance->end_of_stock(outcome.timed);                                                  \
            leave(ours);                                                                                     \
        }                                                                                                    \
        is_inside = 0;                                                                                       \
        return result;                                                                                       \
    }
EACH_COLLECTIVE(BLOCKING)

#define NONBLOCKING(name, parameters, names, described, op)                                                  \
    static int i##name(INSIDE parameters, ompi_request_t **request, mca_coll_base_module_t *module) {        \
        static const void *known;                                                                            \
        polycast_module_t *ours = (polycast_module_t *)module;                                               \
        const mca_coll_base_comm_coll_t *below = &ours->below;                                               \
        const void *caller = __builtin_return_address(0);                                                    \
        if (polycast_entrance && polycast_is_programs(caller, "MPI_I" #name, &known)) {                      \
            const struct call call = {INSIDE described};                                                     \
            int result;                                                                                      \
            if (polycast_start_request(ours, &call, op, request, &result)) {                                 \
                return result;                                                                               \
            }                                                                                                \
        }                                                                                                    \
        return below->coll_i##name(INSIDE names, request, below->coll_i##name##_module);                     \
    }
EACH_COLLECTIVE(NONBLOCKING)

#define PERSISTENT(name, parameters, names, described, op)                                                   \
    static int name##_init(INSIDE parameters, struct ompi_info_t *info, ompi_request_t **request,            \
                           mca_coll_base_module_t *module) {                                                 \
        polycast_module_t *ours = (polycast_module_t *)module;                                               \
        const mca_coll_base_comm_coll_t *below = &ours->below;                                               \
        int result =                                                                                         \
            below->coll_##name##_init(INSIDE names, info, request, below->coll_##name##_init_module);        \
        if (result == MPI_SUCCESS && polycast_entrance) {                                                    \
            const struct call call = {INSIDE described};                                                     \
            const int was_inside = is_inside;                                                                \
            is_inside = 1;                                                                                   \
            result = polycast_make_persistent(ours, &call, op, *request, request);                           \
            is_inside = was_inside;                                                                          \
        }                                                                                                    \
        return result;                                                                                       \
    }
EACH_COLLECTIVE(PERSISTENT)

/* A function that nobody below us has is not taken. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm) {
    polycast_module_t *ours = (polycast_module_t *)module;
    ours->below = *comm->c_coll;
    ours->is_enabled = 1;
#define TAKE(name)                                                                                           \
    if (ours->below.coll_##name) {                                                                           \
        ours->super.coll_##name = name;                                                                      \
        OBJ_RETAIN(ours->below.coll_##name##_module);                                                        \
    }
#define TAKE_FORMS(name, parameters, names, described, op) TAKE(name) TAKE(i##name) TAKE(name##_init)
    EACH_COLLECTIVE(TAKE_FORMS)
    return OMPI_SUCCESS;
}

static void construct(polycast_module_t *module) {
    module->is_enabled = 0;
    module->is_busy = 0;
    module->super.coll_module_enable = enable;
}

static void destruct(polycast_module_t *module) {
#define GIVE_BACK(name)                                                                                      \
    if (module->is_enabled && module->super.coll_##name) {                                                   \
        OBJ_RELEASE(module->below.coll_##name##_module);                                                     \
    }
#define GIVE_BACK_FORMS(name, parameters, names, described, op)                                              \
    GIVE_BACK(name) GIVE_BACK(i##name) GIVE_BACK(name##_init)
    EACH_COLLECTIVE(GIVE_BACK_FORMS)
}

OBJ_CLASS_INSTANCE(polycast_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t *polycast_module_new(void) {
    return (mca_coll_base_module_t *)OBJ_NEW(polycast_module_t);
}
