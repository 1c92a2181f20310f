/* What the door of Open MPI gives to the component, beside what it gives to the preloaded object. */
#ifndef POLYCAST_ENTRANCE_H
#define POLYCAST_ENTRANCE_H

#include "door.h"
#include "preload.h"

struct entrance {
    /* Hands the door the MPI's own collectives, and gets what a program may ask polycast. NULL: POLYCAST=off. */
    open_function *open;

    /* What serves a blocking call. `op`: MPI_OP_NULL where nothing is combined. Of MPI_Allgatherv the call has the blocks, without their longest. */
    struct outcome (*serve)(const struct call *call, MPI_Op op);
    /* The MPI has done a call that was left to it, for which serve gave `timed`. */
    void (*end_of_stock)(const struct communicator *timed);
};

/* Exported by the door. `is_opaque_type`: see door_is_opaque_type. The version is that of polycast.h; NULL: the door is of another. Errors are returned from now on, and not reported to
 * the program's error handler. */
typedef const struct entrance *enter_function(uint32_t interface_version,
                                              int (*is_opaque_type)(MPI_Datatype type));
enter_function polycast_door_enter;

#endif
