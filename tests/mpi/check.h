/* What the test programs share: a byte pattern with its verification, and one way to end.
 *
 * A program ends with `OK name` from rank 0, or aborts the job with one line that names rank, case and byte.
 */
#ifndef POLYCAST_TESTS_CHECK_H
#define POLYCAST_TESTS_CHECK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Never written by a pattern on purpose, so that a byte which nobody wrote is seen. */
#define CHECK_UNWRITTEN 0xA5

/* Ends the job with a line that says what was expected and what was found. */
_Noreturn void check_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(condition, ...) ((condition) ? (void)0 : check_fail(__VA_ARGS__))

/* Fills with bytes that depend on the position and on the seed: a segment that lands in the wrong place, or
 * that belongs to another broadcast, is noticed. */
void check_fill(void *buffer, size_t bytes, uint64_t seed);

/* The 8 bytes that the pattern has at a multiple of 8. */
uint64_t check_word(uint64_t seed, uint64_t index);

/* Ends the job unless the buffer holds the pattern. `what` names the case. */
void check_pattern(const void *buffer, size_t bytes, uint64_t seed, const char *what);

/* Ends the job unless every byte is CHECK_UNWRITTEN. */
void check_unwritten(const void *buffer, size_t bytes, const char *what);

/* A broadcast of a pattern that all ranks verify. */
void check_broadcast(MPI_Comm comm, void *message, size_t bytes, int root, uint64_t seed, const char *what);

/* Memory of this process that is there, in KiB. */
long check_resident_kib(void);

/* Allocates or ends the job. */
void *check_allocate(size_t bytes);

/* Waits for all ranks of MPI_COMM_WORLD, then rank 0 prints `OK name`. */
void check_ok(const char *name);

/* Runs `body` with each of the algorithms in CHECK_ALGORITHMS, which are separated by spaces, through polycast_configure; once
 * on MPI_COMM_WORLD if it is not set. `body` broadcasts on check_comm, which has the ranks of MPI_COMM_WORLD. */
void check_each_algorithm(void (*body)(void));
extern MPI_Comm check_comm;

/* The same with the sets of settings in CHECK_SETTINGS: `POLYCAST_ALLREDUCE=… POLYCAST_REDUCE=…;POLYCAST_ALLREDUCE=…`. */
void check_each_setting(void (*body)(void));

/* Rank in and size of MPI_COMM_WORLD. */
int check_rank(void);
int check_size(void);

#endif
