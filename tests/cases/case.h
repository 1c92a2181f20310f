/* What the cases share beside tests/mpi/check.h: how often a case makes its calls. */
#ifndef POLYCAST_TESTS_CASE_H
#define POLYCAST_TESTS_CASE_H

#include "check.h"

#include <stdlib.h>
#include <string.h>

/* On one node the built-in table serves from the 257th call on: both sides of that are seen. */
enum { USUAL_CALLS = 300 };

/* `PROGRAM [CALLS]` */
static inline int case_calls(int argc, char **argv) {
    return argc > 1 ? atoi(argv[1]) : USUAL_CALLS;
}

#endif
