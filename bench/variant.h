/* The variants of a collective that are compared. Each but `blast` has its communicator, on which MPI is
 * called as any program calls it; what serves the call was fixed when the communicator was made. */
#ifndef POLYCAST_BENCH_VARIANT_H
#define POLYCAST_BENCH_VARIANT_H

#include <mpi.h>
#include <stdbool.h>

#include "blast.h"
#include "payload.h"
#include "plan.h"

struct variant {
    bool is_blast;
    MPI_Comm communicator; /* of all but blast */
    struct blast blast;
};

/* Whether a call by the variant of this name either delivers or is wrong. Blast may lose data. */
bool variant_is_reliable(const char *name);

/* Opens the variant `name` for all ranks: "stock", "polycast" for the choice by table, an algorithm, or
 * "blast" on the plan's interface. Collective over `ranks`. Returns false with a sentence in `error`, on all ranks alike. */
bool variant_open(struct variant *variant, const char *name, const struct plan *plan, MPI_Comm ranks,
                  char *error, int error_size);
void variant_close(struct variant *variant);

/* After the window of a repetition that lost data: forgets what came too late. */
void variant_settle(struct variant *variant);

/* Makes the call. Returns false when this rank knows that data was lost: not before `silence_ns` without any. */
bool variant_run(struct variant *variant, const struct call *call, struct payload *payload,
                 int64_t silence_ns);

/* Writes what serves such calls, in the form of POLYCAST_BCAST. Returns false where polycast does not tell, and for blast. */
bool variant_choice(const struct variant *variant, const struct call *call, char *text, int size);

/* Polycast is still comparing ways to serve such calls (POLYCAST_TRIALS). The same on all ranks. */
bool variant_is_compared(const struct variant *variant, const struct call *call);

#endif
