/*
 * The MPI functions that polycast takes, one line each. From these lines come the names that libpolycast-mpi.so exports
 * (MPI_X, PMPI_X, and MPI_X_c, PMPI_X_c with MPI_Count in place of int), how the real ones are found, what a call does when
 * there is no door yet or none at all, and the doors' tables. doors/symbols.txt lists what else is exported.
 *
 * A new one is a line here, and a handler `handle_X` in door.c.
 *
 *   ENTRY(X, (parameters), (their names), whether all counts fit an int)
 *
 * Who expands the table says what a COUNT is: int, or int64_t for the functions whose names end in _c.
 */
#ifndef POLYCAST_ENTRIES_H
#define POLYCAST_ENTRIES_H

#include <limits.h>
#include <stdint.h>

typedef uintptr_t handle; /* an MPI handle of any family */

#define FITS_INT(count) ((count) >= INT_MIN && (count) <= INT_MAX)

/* clang-format off */
#define POLYCAST_ENTRIES(ENTRY, COUNT) \
    ENTRY(Bcast, (void *buffer, COUNT count, handle type, int root, handle comm), \
          (buffer, count, type, root, comm), FITS_INT(count)) \
    ENTRY(Ibcast, (void *buffer, COUNT count, handle type, int root, handle comm, handle *request), \
          (buffer, count, type, root, comm, request), FITS_INT(count)) \
    ENTRY(Bcast_init, (void *buffer, COUNT count, handle type, int root, handle comm, handle info, handle *request), \
          (buffer, count, type, root, comm, info, request), FITS_INT(count))

/* After these MPI has begun. They have no form with MPI_Count. */
#define POLYCAST_BEGINNINGS(BEGINNING) \
    BEGINNING(Init, (int *argc, char ***argv), (argc, argv)) \
    BEGINNING(Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))
/* clang-format on */

#endif
