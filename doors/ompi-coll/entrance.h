/* What the door of Open MPI gives to the component, beside what it gives to the preloaded object. */
#ifndef POLYCAST_ENTRANCE_H
#define POLYCAST_ENTRANCE_H

#include "door.h"
#include "preload.h"

/* What the component gives to the door: what only it knows of Open MPI's insides. */
struct insides {
    int (*is_opaque_type)(MPI_Datatype type);                    /* door_is_opaque_type */
    int (*has_completed)(MPI_Request *requests, uint32_t count); /* door_has_completed */
    void (*wait_for_flights)(const struct communicator *state);  /* door_wait_for_flights */
};

/* A call that is under way, and that nobody waits for. */
struct flight;

struct entrance {
    /* Hands the door the MPI's own collectives, and gets what a program may ask polycast. */
    open_function *open;

    /* Of all calls: `op` is MPI_OP_NULL where nothing is combined, and MPI_Allgatherv's has the blocks, without their longest. */

    /* What serves a blocking call. */
    struct outcome (*serve)(const struct call *call, MPI_Op op);
    /* The MPI has done a call that was left to it, for which serve gave `timed`. */
    void (*end_of_stock)(const struct communicator *timed);

    /* Starts a call, if polycast serves it. NULL and MPI_SUCCESS: stock is to do it; NULL and an error: nobody. `form`: what it is counted
     * as where stock does it. */
    struct flight *(*start)(const struct call *call, MPI_Op op, uint32_t form, int *result);
    /* Lets it go on. 1: it has ended, and is no more. */
    int (*has_ended)(struct flight *flight, int *result);
    /* Such calls will be started: collective, and what they need is made ready. */
    void (*prepare)(const struct call *call, MPI_Op op);
};

/* Exported by the door. The version is that of polycast.h; NULL: the door is of another. Errors are returned from now on, and not
 * reported to the program's error handler. */
typedef const struct entrance *enter_function(uint32_t interface_version, const struct insides *insides);
enter_function polycast_door_enter;

#endif
