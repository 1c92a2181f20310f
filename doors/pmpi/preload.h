/* What the preloaded object and the doors share. */
#ifndef POLYCAST_PRELOAD_H
#define POLYCAST_PRELOAD_H

#include "entries.h"

/* Bcast_function, Bcast_c_function, … */
#define TYPE(name, parameters, names, fits) typedef int name##_function parameters;
#define TYPE_C(name, parameters, names, fits) typedef int name##_c_function parameters;
POLYCAST_ENTRIES(TYPE, TYPE_C)
#undef TYPE
#undef TYPE_C

/* One function for each name: the real MPI's, or where calls are to go from now on. None is NULL. */
struct entries {
#define MEMBER(name, parameters, names, fits) name##_function *name;
#define MEMBER_C(name, parameters, names, fits) name##_c_function *name##_c;
    POLYCAST_ENTRIES(MEMBER, MEMBER_C)
#undef MEMBER
#undef MEMBER_C
};

typedef int configure_function(const char *name, const char *value);
typedef int choice_function(const char *collective, handle comm, int64_t bytes, char *text, int size);

/* MPI's, which takes the address of a communicator. */
typedef int ending_function(void *comm);

/* What a door gives. */
struct served {
    struct entries entries; /* holds the real MPI's functions until the door replaces them */
    configure_function *configure;
    choice_function *choice;
    void (*window_made)(void);
    int (*end)(ending_function *stock, void *comm);
    void (*aborting)(void);  /* the program ends the job */
    void (*begin)(void);     /* called when MPI has begun and all ranks are served */
    uint64_t build_identity; /* polycast_build_identity() of the runtime behind the door */
};

/* What a door exports: `polycast_door_open`, and `polycast_door_version`, the POLYCAST_INTERFACE_VERSION that it was compiled
 * with. It may be left over from another version, with another `struct served`. */
typedef void open_function(const struct entries *stock, struct served *served);

/* A component of the MPI itself serves the program: calls go to the MPI as they are, and it answers what the program asks. It calls this when
 * MPI has begun, before MPI_Init returns. */
typedef void give_way_function(configure_function *configure, choice_function *choice);

#endif
