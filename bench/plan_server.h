/* A job that measures one plan after the other: `polycast tune` writes to rank 0's standard input, line by line, what would be the arguments,
 * between spaces.
 *
 *     tool ── a plan ──▶ rank 0 ── plan ──▶ all ranks
 *     tool ◀─ its lines, from `polycast-bench` to `end` or `error` ─
 *
 * The line `end` and the end of standard input end the job.
 */
#ifndef POLYCAST_BENCH_PLAN_SERVER_H
#define POLYCAST_BENCH_PLAN_SERVER_H

#include <mpi.h>
#include <stdbool.h>

/* The only argument with which the measuring program takes plans. */
#define PLAN_SERVER_ARGUMENT "plans"

/* Measures a plan, given like the arguments of a program. Returns whether it could be measured, the same on all ranks. */
typedef bool plan_measure(int count, char **words);

/* Obeys until the end. Collective over `comm`. Returns false after a plan that could not be measured. */
bool plan_server_run(MPI_Comm comm, plan_measure *measure);

#endif
