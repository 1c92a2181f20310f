/* What the preloaded object and the doors share. A door sees the same types with its MPI's handles in place.
 */
#ifndef POLYCAST_PRELOAD_H
#define POLYCAST_PRELOAD_H

#include <stdint.h>

typedef uintptr_t handle; /* an MPI handle of any family */

typedef int init_function(int *argc, char ***argv);
typedef int init_thread_function(int *argc, char ***argv, int required, int *provided);
typedef int bcast_function(void *buffer, int count, handle type, int root, handle comm);
typedef int bcast_c_function(void *buffer, int64_t count, handle type, int root, handle comm);
typedef int ibcast_function(void *buffer, int count, handle type, int root, handle comm, handle *request);
typedef int ibcast_c_function(void *buffer, int64_t count, handle type, int root, handle comm,
                              handle *request);
typedef int configure_function(const char *name, const char *value);
typedef int choice_function(handle comm, int64_t bytes, char *text, int size);

/* Every entry point into polycast's objects has these names; they are declared here as the preload object
 * sees them. */
#ifdef POLYCAST_PRELOAD
init_function MPI_Init, PMPI_Init;
init_thread_function MPI_Init_thread, PMPI_Init_thread;
bcast_function MPI_Bcast, PMPI_Bcast;
bcast_c_function MPI_Bcast_c, PMPI_Bcast_c;
ibcast_function MPI_Ibcast, PMPI_Ibcast;
ibcast_c_function MPI_Ibcast_c, PMPI_Ibcast_c;
configure_function polycast_configure;
choice_function polycast_choice;
#endif

/* The real MPI's functions; none is NULL. */
struct stock {
    bcast_function *bcast;
    bcast_c_function *bcast_c;
    ibcast_function *ibcast;
    ibcast_c_function *ibcast_c;
};

/* Where calls are to go from now on; holds the stock functions until the door replaces them. */
struct served {
    bcast_function *bcast;
    bcast_c_function *bcast_c;
    ibcast_function *ibcast;
    ibcast_c_function *ibcast_c;
    configure_function *configure;
    choice_function *choice;
    void (*begin)(void);     /* called when MPI has begun and all ranks are served */
    uint64_t build_identity; /* polycast_build_identity() of the runtime behind the door */
};

/* `polycast_door_open`, the one symbol that a door exports. */
typedef void open_function(const struct stock *stock, struct served *served);

#endif
