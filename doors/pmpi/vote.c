/*
 * The ranks of a job agree on whether polycast serves at all, before the first broadcast: ranks that are switched off, have
 * no door, or run another build would wait for other messages than the rest.
 *
 * Every rank with this object takes part, whatever it can do, so nothing here may need a door. The message is the same
 * in all versions for ever: eight MPI_INT64_T, none of them negative, of which MPI_MIN says all. (MPICH 4.0.2 and Open
 * MPI 4.1.4 compare some unsigned types as if they were signed.)
 *
 *   0, 1   63 bits of the build identity, and their complement: equal on all ranks if the smallest of one is the complement
 *          of the smallest of the other; NOBODY in both on ranks that have none
 *   2      the rank, if it is switched off; NOBODY otherwise
 *   3      the rank, if it has no door
 *   4      the rank, if it is ready
 *   5 … 7  NOBODY, for later
 */
#include "vote.h"

#include <stdio.h>

#define NOBODY INT64_MAX

enum word { IDENTITY, COMPLEMENT, OFF, NO_DOOR, READY, WORDS = 8 };

static void fill(int64_t words[WORDS], enum standing standing, uint64_t build_identity, int rank) {
    for (int i = 0; i < WORDS; i++) {
        words[i] = NOBODY;
    }
    if (standing == STANDING_READY) {
        words[IDENTITY] = (int64_t)(build_identity >> 1);
        words[COMPLEMENT] = NOBODY - words[IDENTITY];
    }
    words[standing == STANDING_OFF ? OFF : standing == STANDING_NO_DOOR ? NO_DOOR : READY] = rank;
}

/* The rank that a reason names says it, so that it is said once and with what that rank knows. */
static struct verdict judge(const int64_t words[WORDS], int rank, const char *problem) {
    struct verdict verdict = {.is_served = 0, .warning = "", .why = ""};
    const size_t room = sizeof verdict.warning;
    const int64_t me = rank;
    const int is_mixed = words[READY] != NOBODY;
    if (words[NO_DOOR] != NOBODY) {
        verdict.why = "a rank has no door to its MPI";
        if (words[NO_DOOR] == me) {
            snprintf(verdict.warning, room, "rank %d has no door to its MPI (%s)", rank, problem);
        }
    } else if (words[OFF] != NOBODY) {
        verdict.why = is_mixed ? "POLYCAST=off on some ranks" : "POLYCAST=off";
        if (is_mixed && words[OFF] == me) {
            snprintf(verdict.warning, room, "rank %d has POLYCAST=off and other ranks have not", rank);
        }
    } else if (words[IDENTITY] != NOBODY - words[COMPLEMENT]) {
        verdict.why = "some ranks have another build of polycast";
        if (rank == 0) {
            snprintf(verdict.warning, room,
                     "some ranks have another build of polycast; install the same one on all nodes");
        }
    } else {
        verdict.is_served = 1;
    }
    return verdict;
}

struct verdict vote(int rank, int size, least_function *least, enum standing standing,
                    uint64_t build_identity, const char *problem) {
    int64_t mine[WORDS], all[WORDS];
    fill(mine, standing, build_identity, rank);
    if (size == 1) {
        return judge(mine, rank, problem);
    }
    if (size < 1 || least(mine, all, WORDS)) {
        struct verdict verdict = {.is_served = 0, .why = "the ranks could not ask each other"};
        snprintf(verdict.warning, sizeof verdict.warning,
                 "the ranks could not ask each other what serves them");
        return verdict;
    }
    return judge(all, rank, problem);
}
