/* library.c: which MPI library this process has. */
#ifndef POLYCAST_LIBRARY_H
#define POLYCAST_LIBRARY_H

#include "preload.h"

struct mpi_library {
    void *object;       /* for dlsym; NULL: there is none */
    const char *family; /* of the door that fits; NULL: none of ours */
};

/* Looks for the library, and makes its symbols global for the door, which is linked without it. */
struct mpi_library find_mpi_library(void);

/* The function that a call of `name` would reach without us, however the library was opened; NULL: there is none. */
void *find_stock_function(const struct mpi_library *library, const char *name);

/* What a message on all ranks needs; MPI's constants differ between the families. */
struct mpi_handles {
    handle world; /* MPI_COMM_WORLD */
    handle int64; /* MPI_INT64_T */
    handle min;   /* MPI_MIN */
};

/* 0 if the library's are not known. */
int find_handles(const struct mpi_library *library, struct mpi_handles *handles);

#endif
