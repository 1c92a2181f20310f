/*
 * polycast-program.h: what a program may tell polycast, and ask it, while it runs. The functions are in libpolycast-mpi.so, the object
 * that is preloaded, or linked with by what `pkg-config --libs polycast` gives. A program that shall also run without polycast asks
 * for them by dlsym(RTLD_DEFAULT, …).
 */
#ifndef POLYCAST_PROGRAM_H
#define POLYCAST_PROGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Overrides the environment variable `name`, "POLYCAST_BCAST" for example, in this process for communicators that are used for the
 * first time from now on; NULL or an empty value unsets it. After MPI has begun it is to be called on all ranks alike. Returns 0, or
 * -1 if polycast knows no such setting or does not serve this program. */
int polycast_configure(const char *name, const char *value);

/* Writes what serves a call of `bytes` of a collective ("bcast", "allreduce", …) on this communicator, with a final NUL, into `text` of
 * `size` bytes: "stock", or as POLYCAST_BCAST takes it. Returns 0; 1 while it is being compared with other ways; -1 if polycast
 * does not serve this program, or there is no such collective. `comm`: POLYCAST_COMM of the MPI_Comm. */
int polycast_choice_of(const char *collective, void *comm, int64_t bytes, char *text, int size);

/* MPIs have pointers or numbers as handles. */
#define POLYCAST_COMM(comm) ((void *)(intptr_t)(comm))

#ifdef __cplusplus
}
#endif

#endif
