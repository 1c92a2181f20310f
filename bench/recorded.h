/* When ranks called in a job that was traced: rows of delays, which repetitions take one after the other. The file is written by
 * `polycast report --arrivals`:
 *
 *     polycast-arrivals 1
 *     ranks N
 *     R T0 T1 …      the root, and how many nanoseconds after the first each rank called; lines that begin with # say nothing
 */
#ifndef POLYCAST_BENCH_RECORDED_H
#define POLYCAST_BENCH_RECORDED_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_RECORDED_ROWS = 4096 };

struct recorded {
    int rows;
    int ranks;
    int64_t *numbers; /* of each row the root, then each rank's delay */
};

/* Rank 0 reads the file and tells it. Returns false with a sentence in `error`, on all ranks alike. */
bool recorded_open(struct recorded *recorded, const char *file, MPI_Comm comm, char *error, int error_size);
void recorded_close(struct recorded *recorded);

/* The longest delay. */
int64_t recorded_longest_ns(const struct recorded *recorded);

/* Of `rank` in this repetition. Rows are turned so that the recorded root's delay is that of `root`. */
int64_t recorded_delay_ns(const struct recorded *recorded, int64_t cycle, int rank, int root);

#endif
