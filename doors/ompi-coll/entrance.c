/* Part of the door of Open MPI: where calls come in that its component takes. */
#include "entrance.h"

#include "calls.h"

static struct outcome serve(const struct call *call, MPI_Op op) {
    struct reduction reduction;
    if (call->blocks) {
        return outcome_of_blocks(*call, *call->blocks);
    }
    const int combines = call->collective == POLYCAST_REDUCE || call->collective == POLYCAST_ALLREDUCE;
    return outcome_of(call, op, combines ? &reduction : NULL);
}

static void end_of_stock(const struct communicator *timed) {
    polycast_end_of_stock(timed->runtime);
}

#define EXPORT __attribute__((visibility("default")))

EXPORT open_function polycast_door_open; /* doors/pmpi/door.c */
EXPORT enter_function polycast_door_enter;

const struct entrance *polycast_door_enter(uint32_t interface_version,
                                           int (*is_opaque_type)(MPI_Datatype type)) {
    static const struct entrance entrance = {
        .open = polycast_door_open, .serve = serve, .end_of_stock = end_of_stock};
    if (interface_version != POLYCAST_INTERFACE_VERSION) {
        return NULL;
    }
    door_reports_errors = 0;
    door_is_opaque_type = is_opaque_type;
    return &entrance;
}
