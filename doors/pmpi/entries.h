/*
 * The MPI functions that polycast takes, one line for each with its nonblocking and its persistent form. From these lines come the names that
 * libpolycast-mpi.so exports (MPI_X, PMPI_X, and MPI_X_c, PMPI_X_c with MPI_Count in place of int), how the real ones are found, what a call
 * does when there is no door yet or none at all, and the doors' tables. doors/symbols.txt lists what else is exported.
 *
 * A new one is a line here, and handlers `handle_X`, `handle_IX` and `handle_X_init` in door.c.
 *
 *   FORMS(X, Ix, (parameters), (their names), whether all counts fit an int)
 *
 * Who expands the table says what a COUNT is: int, or int64_t for the functions whose names end in _c. Arrays of them are `const void *`, and
 * ARRAYS_FIT puts arrays of ints in their places.
 */
#ifndef POLYCAST_ENTRIES_H
#define POLYCAST_ENTRIES_H

#include <limits.h>
#include <stdint.h>

typedef uintptr_t handle; /* an MPI handle of any family */

#define FITS_INT(count) ((count) >= INT_MIN && (count) <= INT_MAX)
#define INSIDE(...) __VA_ARGS__

/* clang-format off */
#define POLYCAST_FORMS(ENTRY, name, nonblocking, parameters, names, fits) \
    ENTRY(name, parameters, names, fits) \
    ENTRY(nonblocking, (INSIDE parameters, handle *request), (INSIDE names, request), fits) \
    ENTRY(name##_init, (INSIDE parameters, handle info, handle *request), (INSIDE names, info, request), fits)

#define POLYCAST_WITH_COUNTS(FORMS, ENTRY, COUNT) \
    FORMS(ENTRY, Bcast, Ibcast, (void *buffer, COUNT count, handle type, int root, handle comm), \
          (buffer, count, type, root, comm), FITS_INT(count)) \
    FORMS(ENTRY, Scatter, Iscatter, (const void *send, COUNT send_count, handle send_type, void *receive, COUNT receive_count, handle receive_type, int root, handle comm), \
          (send, send_count, send_type, receive, receive_count, receive_type, root, comm), FITS_INT(send_count) && FITS_INT(receive_count)) \
    FORMS(ENTRY, Gather, Igather, (const void *send, COUNT send_count, handle send_type, void *receive, COUNT receive_count, handle receive_type, int root, handle comm), \
          (send, send_count, send_type, receive, receive_count, receive_type, root, comm), FITS_INT(send_count) && FITS_INT(receive_count)) \
    FORMS(ENTRY, Allgather, Iallgather, (const void *send, COUNT send_count, handle send_type, void *receive, COUNT receive_count, handle receive_type, handle comm), \
          (send, send_count, send_type, receive, receive_count, receive_type, comm), FITS_INT(send_count) && FITS_INT(receive_count)) \
    FORMS(ENTRY, Allgatherv, Iallgatherv, (const void *send, COUNT send_count, handle send_type, void *receive, const void *receive_counts, const void *places, handle receive_type, handle comm), \
          (send, send_count, send_type, receive, receive_counts, places, receive_type, comm), ARRAYS_FIT(receive_counts, places, comm)) \
    FORMS(ENTRY, Alltoall, Ialltoall, (const void *send, COUNT send_count, handle send_type, void *receive, COUNT receive_count, handle receive_type, handle comm), \
          (send, send_count, send_type, receive, receive_count, receive_type, comm), FITS_INT(send_count) && FITS_INT(receive_count)) \
    FORMS(ENTRY, Reduce, Ireduce, (const void *send, void *receive, COUNT count, handle type, handle op, int root, handle comm), \
          (send, receive, count, type, op, root, comm), FITS_INT(count)) \
    FORMS(ENTRY, Allreduce, Iallreduce, (const void *send, void *receive, COUNT count, handle type, handle op, handle comm), \
          (send, receive, count, type, op, comm), FITS_INT(count))

/* They have no form with MPI_Count. */
#define POLYCAST_WITHOUT_COUNTS(FORMS, ENTRY) \
    FORMS(ENTRY, Barrier, Ibarrier, (handle comm), (comm), 1)

/* All of them: ENTRY_C takes the names without their _c. */
#define POLYCAST_ENTRIES(ENTRY, ENTRY_C) \
    POLYCAST_WITHOUT_COUNTS(POLYCAST_FORMS, ENTRY) \
    POLYCAST_WITH_COUNTS(POLYCAST_FORMS, ENTRY, int) \
    POLYCAST_WITH_COUNTS(POLYCAST_FORMS, ENTRY_C, int64_t)

/* After these MPI has begun. They have no form with MPI_Count either. */
#define POLYCAST_BEGINNINGS(BEGINNING) \
    BEGINNING(Init, (int *argc, char ***argv), (argc, argv)) \
    BEGINNING(Init_thread, (int *argc, char ***argv, int required, int *provided), (argc, argv, required, provided))

/* After these other ranks may want of this one what no call of its own is for, at any time. */
#define POLYCAST_WINDOWS(WINDOW) \
    WINDOW(Win_create, (void *base, intptr_t bytes, int unit, handle info, handle comm, void *window), (base, bytes, unit, info, comm, window)) \
    WINDOW(Win_allocate, (intptr_t bytes, int unit, handle info, handle comm, void *base, void *window), (bytes, unit, info, comm, base, window)) \
    WINDOW(Win_allocate_shared, (intptr_t bytes, int unit, handle info, handle comm, void *base, void *window), (bytes, unit, info, comm, base, window)) \
    WINDOW(Win_create_dynamic, (handle info, handle comm, void *window), (info, comm, window))

/* After this no function of ours is called any more. */
#define POLYCAST_ABORTS(ABORT) \
    ABORT(Abort, (handle comm, int code), (comm, code))

/* In these the program's own functions may still use a communicator that is going. */
#define POLYCAST_ENDINGS(ENDING) \
    ENDING(Comm_free) \
    ENDING(Comm_disconnect)
/* clang-format on */

#endif
