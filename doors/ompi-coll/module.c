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
        const mca_coll_base_comm_coll_t *below = &((polycast_module_t *)module)->below;                      \
        if (is_inside || !polycast_entrance) {                                                               \
            return below->coll_##name(INSIDE names, below->coll_##name##_module);                            \
        }                                                                                                    \
        is_inside = 1;                                                                                       \
        const struct call call = {INSIDE described};                                                         \
        const struct outcome outcome = polycast_entrance->serve(&call, op);                                  \
        int result = outcome.is_served ? outcome.result                                                      \
                                       : below->coll_##name(INSIDE names, below->coll_##name##_module);      \
        if (outcome.timed) {                                                                                 \
            polycast_entrance->end_of_stock(outcome.timed);                                                  \
        }                                                                                                    \
        is_inside = 0;                                                                                       \
        return result;                                                                                       \
    }
EACH_COLLECTIVE(BLOCKING)

/* A function that nobody below us has is not taken. */
static int enable(mca_coll_base_module_t *module, struct ompi_communicator_t *comm) {
    polycast_module_t *ours = (polycast_module_t *)module;
    ours->below = *comm->c_coll;
    ours->is_enabled = 1;
#define TAKE(name, parameters, names, described, op)                                                         \
    if (ours->below.coll_##name) {                                                                           \
        ours->super.coll_##name = name;                                                                      \
        OBJ_RETAIN(ours->below.coll_##name##_module);                                                        \
    }
    EACH_COLLECTIVE(TAKE)
    return OMPI_SUCCESS;
}

static void construct(polycast_module_t *module) {
    module->is_enabled = 0;
    module->super.coll_module_enable = enable;
}

static void destruct(polycast_module_t *module) {
#define GIVE_BACK(name, parameters, names, described, op)                                                    \
    if (module->is_enabled && module->super.coll_##name) {                                                   \
        OBJ_RELEASE(module->below.coll_##name##_module);                                                     \
    }
    EACH_COLLECTIVE(GIVE_BACK)
}

OBJ_CLASS_INSTANCE(polycast_module_t, mca_coll_base_module_t, construct, destruct);

mca_coll_base_module_t *polycast_module_new(void) {
    return (mca_coll_base_module_t *)OBJ_NEW(polycast_module_t);
}
