/*
 * polycast.h: the interface between polycast's runtime (libpolycast.so, Rust) and its doors (C, one per MPI
 * family).
 *
 * A door knows MPI and nothing of algorithms; the runtime knows algorithms and nothing of MPI. Everything
 * that crosses is bytes, ranks and slots. A door gives the runtime a table of functions (`polycast_door`)
 * and, for each communicator, one pointer of its own, which comes back as the first argument of each of them.
 *
 *   program ── MPI_Bcast ──▶ door ──┬─ polycast_plan ─▶ runtime     no plan: the door calls the real MPI
 *                                   └─ polycast_run ──▶ runtime     or start, and test or wait
 *                              MPI ◀── door ◀── isend, irecv, poll ────┘
 *
 * Error codes: functions of the door return 0 or an error code of its MPI; functions of the runtime return 0,
 * such a code handed back, or one of the negative POLYCAST_* values. Nothing here aborts or throws.
 *
 * Floating-point environment (traps, rounding, exceptions raised): the program's is left as it is. The door's functions are called in it.
 *
 * Threads: calls for different communicators may run at the same time; calls for one communicator may not (as
 * MPI itself demands of collectives).
 */
#ifndef POLYCAST_H
#define POLYCAST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every incompatible change of this file; the runtime refuses a door of another version. */
#define POLYCAST_INTERFACE_VERSION 19u

/* The runtime failed inside; the call was not carried out. */
#define POLYCAST_ERROR_INTERNAL (-1)
/* A message of another size than the call implies: the ranks called with different sizes. */
#define POLYCAST_ERROR_SIZE (-2)

/* The runtime never asks for one message larger than this, so a count always fits an int. */
#define POLYCAST_MESSAGE_MOST_BYTES ((size_t)4 << 20)

/* The peer of a receive that takes a message from whoever sends one. */
#define POLYCAST_ANY_PEER (-1)

/* Bits of polycast_door.capabilities. All ranks must have a CAN bit for it to be used. */
#define POLYCAST_CAN_PACK 1u /* MPI_Pack gives the elements' bytes in type-map order, and nothing else */
/* This rank's MPI gives the processor to others itself when it is asked and finds nothing. */
#define POLYCAST_GIVES_WAY 2u

/* Collectives. */
#define POLYCAST_BROADCAST 0u
#define POLYCAST_SCATTER 1u
#define POLYCAST_GATHER 2u
#define POLYCAST_ALLGATHER 3u
#define POLYCAST_ALLTOALL 4u
#define POLYCAST_BARRIER 5u
#define POLYCAST_REDUCE 6u
#define POLYCAST_ALLREDUCE 7u
#define POLYCAST_ALLGATHERV                                                                                  \
    8u /* has no plans: it is an allgather of blocks that are as long as the longest */
/* The names of collectives, at their numbers. */
#define POLYCAST_COLLECTIVE_NAMES                                                                            \
    { "bcast", "scatter", "gather", "allgather", "alltoall", "barrier", "reduce", "allreduce" }

/* What polycast_plan answers. */
#define POLYCAST_LEFT 0   /* for the stock MPI */
#define POLYCAST_SERVED 1 /* by the plan */
#define POLYCAST_LEFT_AND_TIMED                                                                              \
    2 /* for the stock MPI, and polycast_end_of_stock is to be called afterwards */

/* Why a call is left to the stock MPI without asking the runtime. */
#define POLYCAST_BECAUSE_INTERCOMMUNICATOR 0u
#define POLYCAST_BECAUSE_ONE_RANK 1u
#define POLYCAST_BECAUSE_NOT_ATTACHED 2u /* polycast_attach gave no state */
#define POLYCAST_BECAUSE_OUTSIDE 3u      /* ranks outside the process's MPI_COMM_WORLD */
#define POLYCAST_BECAUSE_EMPTY 4u        /* 0 bytes */
#define POLYCAST_BECAUSE_OPERATION 5u    /* a datatype or an operation that is not combined here */
#define POLYCAST_BECAUSE_UNEVEN 6u       /* blocks of very different lengths */

/* Forms of each collective, POLYCAST_ALLGATHERV included, that are counted but never served. */
#define POLYCAST_NONBLOCKING 0u /* MPI_Ibcast and MPI_Ibcast_c */
#define POLYCAST_PERSISTENT 1u  /* MPI_Bcast_init and MPI_Bcast_init_c: once, however often it is started */

struct polycast_call;

/* A message that the MPI is through with. */
typedef struct polycast_completion {
    uint32_t slot;
    int error;    /* 0, or the MPI's error code: this message has failed */
    size_t bytes; /* of a receive, those that came */
} polycast_completion;

/* What a door can do. `communicator` is what the door gave to polycast_attach or, while MPI begins, to polycast_begin. Messages go over
 * one private communicator of the door's, of all ranks of MPI_COMM_WORLD, which no program sees; the runtime tells the messages of different
 * communicators apart by their tags. */
typedef struct polycast_door {
    uint32_t interface_version; /* POLYCAST_INTERFACE_VERSION */
    uint32_t capabilities;      /* POLYCAST_CAN_*, POLYCAST_GIVES_WAY */

    /* Stock collectives on the user's communicator, used before anything is served. `all` has room for size *
     * bytes. */
    int (*allgather)(void *communicator, const void *mine, void *all, size_t bytes);
    int (*broadcast)(void *communicator, void *buffer, size_t bytes, int root);

    /* The stock MPI_Allreduce on the user's communicator: adds up, and all ranks have the same sums. */
    int (*sum)(void *communicator, uint64_t *values, size_t count);

    /* The same with MPI_BAND: leaves the bits that all ranks have. */
    int (*intersect)(void *communicator, uint64_t *words, size_t count);

    /* The stock collective on the user's communicator, for measuring it: of plain bytes, at most 2^31 - 1 of them in a block; where
     * something is combined, words of 64 bits are added up, and `reduction` is not looked at. `send` and `receive` as of polycast_start. */
    int (*stock)(void *communicator, const struct polycast_call *call, const void *send, void *receive);

    /* The rank in MPI_COMM_WORLD of each rank of the user's communicator. Local. */
    int (*world_ranks)(void *communicator, int *ranks);

    /* Starts a message on the private communicator; the peer is a rank of MPI_COMM_WORLD, of a
     * receive also POLYCAST_ANY_PEER. `slot` names it until poll reports it; slots
     * are dense: the runtime uses the lowest free one. bytes <= POLYCAST_MESSAGE_MOST_BYTES. */
    int (*isend)(void *communicator, const void *buffer, size_t bytes, int peer, int tag, uint32_t slot);
    int (*irecv)(void *communicator, void *buffer, size_t bytes, int peer, int tag, uint32_t slot);

    /* Lets MPI work and reports what has completed or failed, without waiting: *completed entries of
     * `completions`, which has room for all slots in use. An error of its own: MPI failed in a way that no message
     * can tell. */
    int (*poll)(void *communicator, polycast_completion *completions, uint32_t *completed);

    /* Of messages in flight: no buffer of these receives is touched any more, and those of these sends are only
     * read. */
    void (*cancel)(void *communicator, const uint32_t *slots, uint32_t count);

    /* The runtime is through with the communicator, which polycast_detach has given up. */
    void (*close)(void *communicator);

    /* Adds up `values` over all ranks of MPI_COMM_WORLD, for rank 0. Collective; used while finalizing. */
    int (*sum_over_world)(uint64_t *values, size_t count);

    /* All ranks of MPI_COMM_WORLD have sent their last message, or are about to. Collective; the last call. */
    void (*take_leave)(void);
} polycast_door;

/* How contributions are combined. */
typedef struct polycast_reduction {
    size_t element_bytes;    /* an element is never divided */
    uint32_t is_commutative; /* 0: they are combined in the order of the ranks */
    uint32_t is_exact;       /* 1: the same bits in any order; 2: those of two contributions are */
    uint32_t is_own;         /* 1: the program's own operation, of which nobody knows how long it takes */
    /* into = from o into, element by element, as MPI_Reduce_local does. `reduction` is this structure, with which one of the
     * door's own may begin. 0, or an error code of MPI. */
    int (*combine)(const struct polycast_reduction *reduction, const void *from, void *into, size_t bytes);
} polycast_reduction;

/* One collective call, as all ranks describe it alike. */
typedef struct polycast_call {
    uint32_t collective; /* POLYCAST_BROADCAST, … */
    int32_t root;        /* where there is one */
    /* Of a message, of a rank's block, or (all-to-all) of the block of two ranks; > 0, but for barriers. */
    size_t bytes;
    const polycast_reduction *reduction; /* NULL where nothing is combined; stays as long as the plan */
} polycast_call;

/* Calls of one collective that a door leaves to the stock MPI by itself; polycast_passes reads it. All ranks leave the same calls. */
typedef struct polycast_passing {
    uint32_t below, above; /* fewer bytes than `below`, or more than `above`: nobody counts the call */
    uint32_t first, last;  /* so many bytes: the door counts the call, */
    uint32_t until;        /* and asks from this count on */
} polycast_passing;

/* One communicator, as the runtime knows it: what it begins with. It may be another after each call of the runtime for this communicator. */
typedef struct polycast_communicator {
    polycast_passing passing[8]; /* by collective */
} polycast_communicator;

/* 1 if the stock MPI serves a blocking call, as all ranks know: polycast_plan need not be asked. This is all that a door may decide by itself.
 * `passing`: what the communicator begins with or, before it is attached, polycast_first_passing. `counts`: the communicator's, by collective;
 * NULL: it has none yet, and what would be counted does not pass. A reduction that the door cannot describe is no such call. */
static inline int polycast_passes(const polycast_passing *passing, uint32_t *counts, uint32_t collective,
                                  size_t bytes) {
    const polycast_passing *of = &passing[collective];
    if (bytes > UINT32_MAX) {
        return 0;
    }
    /* Another thread may call polycast_set meanwhile. */
    if (bytes < __atomic_load_n(&of->below, __ATOMIC_RELAXED) ||
        bytes > __atomic_load_n(&of->above, __ATOMIC_RELAXED)) {
        return 1;
    }
    if (!counts || counts[collective] >= __atomic_load_n(&of->until, __ATOMIC_RELAXED) ||
        bytes < __atomic_load_n(&of->first, __ATOMIC_RELAXED) ||
        bytes > __atomic_load_n(&of->last, __ATOMIC_RELAXED)) {
        return 0;
    }
    counts[collective]++;
    return 1;
}

/* How a call is served; it may be run any number of times. No typedef: a function has that name. */
struct polycast_plan;

/* A call under way, by polycast_start. It takes no memory but this, which may be copied. */
typedef struct polycast_operation {
    polycast_communicator *communicator;
    uint32_t key;
} polycast_operation;

/* The runtime's version, as in "0.2.0". */
const char *polycast_version(void);

/* The runtime's POLYCAST_INTERFACE_VERSION. */
uint32_t polycast_interface_version(void);

/* Which build this is: a hash over the version, the sources, the table that is built in and the machine's kind
 * (docs/agreement.md). The same in all processes that run the same build, never 0. Ranks with different builds
 * may choose differently, so they are left to the stock MPI. */
uint64_t polycast_build_identity(void);

/* 0 if POLYCAST=off (or 0, no, false) stands in the environment: the doors must not call anything else then.
 */
int polycast_is_enabled(void);

/* Overrides the environment variable `name` in this process for communicators attached from now on; an empty
 * value or NULL unsets it. Programs reach it as polycast_configure in libpolycast-mpi.so. Returns 0, or -1 if
 * polycast knows no such setting. Known: POLYCAST_BCAST and those of the other collectives, POLYCAST_TABLE, POLYCAST_TOPOLOGY, POLYCAST_PARAMS,
 * POLYCAST_SUMS, POLYCAST_TRIALS, POLYCAST_TUNE, POLYCAST_SHARED_MEMORY, POLYCAST_WAIT, POLYCAST_MULTICAST, POLYCAST_NET, POLYCAST_MADCAP. After MPI has begun it is to be called on all ranks between the same calls, for then the
 * ranks of each communicator that is attached from now on compare their settings again. */
int polycast_set(const char *name, const char *value);

/* When MPI has begun, and before anything is attached; once. Collective over MPI_COMM_WORLD, whose rank and size this is, and which `world`
 * stands for in the functions of the door, which stays as long as the process. Ranks compare versions and settings (rank 0's count), and learn
 * who shares a host with whom. `tag_most`: the largest tag of the private communicator. `has_threads`: several threads may be in MPI at a
 * time. 1, or 0 if the stock MPI is to serve everything (another version of polycast on some rank, for example); that is the same on all ranks.
 * Where MPI fails meanwhile, this rank does not know what the others do: all its calls are served, and give MPI's error. */
int polycast_begin(const polycast_door *door, void *world, int rank, int size, int tag_most, int has_threads);

/* What passes on whatever communicator of so many ranks while it is not attached: nothing need be made for one that has had no other calls, but
 * counts where one was counted. By collective; stays as long as the process. Local. */
const polycast_passing *polycast_first_passing(int ranks);

/* Makes the state of a communicator, of the ranks of MPI_COMM_WORLD that are in `world_ranks`, which may go afterwards. Local, unless the
 * program has called polycast_set since MPI began: then collective over it, so not to be called in a nonblocking call. *attached is NULL if
 * this communicator is to be left to the stock MPI; that is the same on all ranks. `counts`: the communicator's for polycast_passes, by collective.
 * They stay until polycast_detach, and the runtime sets them to 0 when it has taken them. */
int polycast_attach(const polycast_door *door, void *communicator, int rank, int size, const int *world_ranks,
                    uint32_t *counts, polycast_communicator **attached);

/* Gives it up. Local; the door's `close` is called now, or in a later call of the runtime, when MPI has nothing
 * more for it. `is_over`: MPI ends. */
void polycast_detach(polycast_communicator *communicator, int is_over);

/* Chooses what serves a call: POLYCAST_SERVED and a plan, or a POLYCAST_LEFT* value and NULL: the MPI below is to serve it. The
 * same on all ranks. Collective the first time that a call is to be served (the ranks agree on the tags of its messages), and the
 * first time that it is by multicast (finds out whether it works). */
int polycast_plan(polycast_communicator *communicator, const polycast_call *call,
                  struct polycast_plan **plan);

/* The same for a call that is started and not waited for, which is not compared with other ways. It uses nothing that the ranks would have to agree on
 * first: that is agreed on in the next call of polycast_plan for this communicator, whatever that one is for. So it is local, and the same on
 * all ranks, which call this and polycast_plan in the same order. `may_wait`: collective, and it is agreed on now. POLYCAST_LEFT or
 * POLYCAST_SERVED; a call that is left is not counted. */
int polycast_plan_ahead(polycast_communicator *communicator, const polycast_call *call, int may_wait,
                        struct polycast_plan **plan);

/* Starts what was planned, and does not wait: on all ranks in the same order. What a rank hands in is at `send`, what it gets goes to
 * `receive`, blocks in the order of the ranks; neither is touched by anybody else until the operation has ended. A broadcast's root has its
 * message at `send`, the others get theirs at `receive`. Elsewhere the one of them that is NULL says MPI_IN_PLACE: `receive` at the root of a
 * scatter, whose own block stays where it is, otherwise `send`, and the rank's contribution is in its place at `receive`. Ranks that
 * get nothing give NULL for `receive`, those that hand in nothing for `send`. An error: nothing was started. Several operations may be under
 * way on a communicator, of one plan or of many. */
int polycast_start(struct polycast_plan *plan, const void *send, void *receive,
                   polycast_operation *operation);

/* Lets all operations of its communicator go on. *has_ended is 0, or 1 and the operation is no more; its error is returned then. */
int polycast_test(const polycast_operation *operation, int *has_ended);

/* Waits for its end. */
int polycast_wait(const polycast_operation *operation);

/* Both. */
int polycast_run(struct polycast_plan *plan, const void *send, void *receive);

/* Gives a plan back, when what was started by it has ended and before polycast_detach. */
void polycast_plan_free(struct polycast_plan *plan);

/* The stock MPI has done a call for which polycast_plan gave POLYCAST_LEFT_AND_TIMED, and has not failed. Local. */
void polycast_end_of_stock(polycast_communicator *communicator);

/* The program makes a window for one-sided communication: ranks that wait let MPI work all the time from now on, for others may want it to.
 * Local. */
void polycast_window_made(void);

/* A call of a collective goes to the stock MPI for a POLYCAST_BECAUSE_* reason. Local; costs some nanoseconds. */
void polycast_count_left(uint32_t collective, uint32_t because, uint64_t bytes);

/* Writes what serves a call of a collective with this many bytes here, in the form of POLYCAST_BCAST ("stock",
 * "chain:segment=8KiB"), and cuts it to `size` with its final NUL. Local: what was not tried yet counts as possible. 1: it is still
 * being compared with other ways (POLYCAST_TRIALS), else 0.
 * Programs reach it as polycast_choice and polycast_choice_of in libpolycast-mpi.so. */
int polycast_name_choice(const polycast_communicator *communicator, uint32_t collective, size_t bytes,
                         char *text, size_t size);

/* A POLYCAST_NONBLOCKING or POLYCAST_PERSISTENT call of a function goes to the stock MPI. Local; costs some nanoseconds. */
void polycast_count_unserved(uint32_t function, uint32_t form, uint64_t bytes);

/* Called once when MPI_Finalize begins, with the rank in MPI_COMM_WORLD: prints the report if it was asked
 * for. Collective if all ranks asked for it and know that (having attached a communicator of all). */
void polycast_finalize(const polycast_door *door, int world_rank);

/* The program calls MPI_Abort on this rank of MPI_COMM_WORLD: what it has counted and recorded is said and written, if that was asked for. Local. */
void polycast_aborting(int world_rank);

#ifdef __cplusplus
}
#endif

#endif
