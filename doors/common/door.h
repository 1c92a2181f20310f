/* What all doors share, however the program's calls come to them: communicators, datatypes, messages, memory. */
#ifndef POLYCAST_DOOR_H
#define POLYCAST_DOOR_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "polycast.h"

/* What the door keeps for a communicator; hangs on it as an attribute. */
struct communicator {
    polycast_communicator *runtime;  /* NULL: left to the stock MPI for ever, or while it is new */
    const polycast_passing *passing; /* of all communicators of the job while it is new, then its own */
    uint32_t counts[8];              /* for polycast_passes */
    uint32_t left_because;           /* for ever: POLYCAST_BECAUSE_* */
    int is_new;                      /* not attached: all its calls have passed */
    int rank;
    int size; /* 0: left for ever */
    MPI_Comm user;

    /* Outstanding messages by slot; MPI_REQUEST_NULL where there is none. */
    MPI_Request *requests;
    MPI_Status *statuses;
    int *indices;
    unsigned char *is_receive;
    uint32_t slots_in_use; /* no request at or above */
    uint32_t slots_capacity;

    uint32_t flights; /* calls under way that nobody waits for */

    struct communicator *previous, *next; /* all that are alive, for the report at finalize */
};

struct call;

/* The MPI's own collectives, which the door knows: PMPI_Bcast by its name may come back to us. */
int door_stock_broadcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int door_stock_allgather(const void *mine, void *all, int count, MPI_Datatype type, MPI_Comm comm);
int door_stock_reduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, int root,
                      MPI_Comm comm);
int door_stock_allreduce(const void *mine, void *all, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm);
int door_stock_barrier(MPI_Comm comm);
/* A call whose counts are ints, on its own communicator; one of blocks that are not alike as an allgather. */
int door_stock_call(const struct call *call);
/* Of plain bytes; words of 64 bits are added up. */
int door_stock_of_bytes(const polycast_call *call, const void *send, void *receive, MPI_Comm comm);

/* communicator.c: the attribute and what belongs to it. Returns a state that is new, one that is left to stock for ever, and NULL if it is left to
 * stock this time. Collective before MPI has begun to be served. */
struct communicator *door_communicator(MPI_Comm comm);
/* Attaches one that is new: its state from now on, without `runtime` if it is left to stock for ever, or NULL. Collective; every argument of the
 * call must have been checked. */
struct communicator *door_attach(struct communicator *state);
/* Makes the attributes and the private communicator, and lets the ranks tell each other what they are. Called when MPI begins, if we
 * see that. Collective over MPI_COMM_WORLD. */
void door_begin(void);
/* Which ranks of MPI_COMM_WORLD those of `comm` are; 0 if some are none. */
int door_world_ranks(MPI_Comm comm, int size, int *world_ranks);
/* MPI has begun to end. */
int door_is_over(void);
/* The program has changed a setting since MPI began: attaching waits for all ranks of the communicator. */
extern int door_attaches_together;
/* What is known of a communicator. */
enum known {
    UNKNOWN, /* it has no state */
    KNOWN,
    OVER, /* MPI has begun to end: nothing is served or counted any more */
};
/* The state, if it is known, without attaching. */
enum known door_known_communicator(MPI_Comm comm, struct communicator **state);

/* Waits for the flights of a communicator that is freed; NULL: there are none anywhere. */
extern void (*door_wait_for_flights)(const struct communicator *state);

/* Frees a state. */
void door_close(void *communicator);

/* point_to_point.c: the functions that the runtime calls back. */

/* Lets MPI work, and tells whether one of these requests has completed; NULL: MPI's own functions are asked. */
extern int (*door_has_completed)(MPI_Request *requests, uint32_t count);

extern polycast_door door_functions;

/* All ranks of MPI_COMM_WORLD, for the messages of all communicators. It returns errors. MPI_COMM_NULL: nothing is served. */
extern MPI_Comm door_private;
/* Makes it. Collective over MPI_COMM_WORLD; the same answer on all ranks: whether there is one. */
int door_open_private(void);

/* Whether ULFM's MPI_Comm_revoke was called for the program's communicator, as far as the MPI tells. */
int door_is_revoked(const struct communicator *state);

/* Whether this MPI gives the processor to others itself while it waits. */
int door_gives_way(void);

/* What a rank hands in, or where it gets something: a block of elements, or one for each rank, one behind the other. */
struct data {
    void *buffer;
    MPI_Count count; /* elements of a block */
    MPI_Datatype type;
};

/* MPI_Allgatherv's blocks: an int each, or an MPI_Count and an MPI_Aint. */
struct blocks {
    const void *counts; /* of elements */
    const void *places; /* in elements from the beginning of the buffer */
    int are_wide;
    MPI_Count longest;
};
MPI_Count door_count_of(const struct blocks *blocks, int rank);
MPI_Aint door_place_of(const struct blocks *blocks, int rank);

/* A collective call, as the program made it. A broadcast's buffer is both. */
struct call {
    uint32_t collective; /* POLYCAST_BROADCAST, … */
    int root;            /* 0 where there is none */
    MPI_Comm comm;
    struct data send, receive;
    const struct blocks *blocks; /* of what is received; NULL: they are alike */
    MPI_Op op;                   /* of a reduction, where errors are ours to tell */
};

/* collective.c: what is done for a call that the runtime serves. */

/* 0: whoever called us tells errors to the program's error handler. */
extern int door_reports_errors;

/* From now on this thread is about to free this communicator, or none: MPI_COMM_NULL. A delete callback of the program's may still use it. What
 * it was before. */
MPI_Comm door_going(MPI_Comm comm);

/* Ends the job, by the MPI's own words, if errors do and something is wrong with the call to this rank alone. */
void door_end_of_wrong(const struct call *call, const struct communicator *state, size_t bytes);
/* Gives the plan back. Returns 0 if the call is for stock after all, which has to say an error: the communicator was revoked. `bytes`: of a
 * block. */
int door_serve(const struct call *call, const struct communicator *state, struct polycast_plan *plan,
               size_t bytes, int *result);

/* calls.h */

/* What a handler did with a call: it was served, or is for stock. */
struct outcome {
    int is_served;
    int result;                 /* if it was served */
    struct communicator *timed; /* to be told when stock has done it; NULL: nobody */
};

/* reduce.c: what is combined. The runtime knows the first field. */
struct reduction {
    polycast_reduction known;
    MPI_Datatype type;
    MPI_Op op;
};

/* Whether the ranks can be served with it: judged by the arguments that are the same on all of them, in some nanoseconds.
 * `element_bytes`: the size of the datatype. */
int door_combines(MPI_Datatype type, MPI_Op op, size_t element_bytes, struct reduction *reduction);

/* device.c: memory that only a GPU may touch, and which kind it is. */
enum memory { HOST_MEMORY, CUDA_MEMORY, HIP_MEMORY };
/* Libraries of GPUs that the program has loaded since; before door_memory_of. */
void door_look_for_devices(void);
enum memory door_memory_of(const void *buffer);
/* Copies between such memory and the host's. */
int door_copy(enum memory memory, void *to, const void *from, size_t bytes);

/* datatype.c */
struct element {
    MPI_Count size;      /* bytes of data */
    MPI_Aint extent;     /* from one element to the next */
    MPI_Aint true_lower; /* from the buffer's address to the first byte of data */
    int is_contiguous;   /* any number of elements is one stretch of bytes, in type-map order */
};
int door_is_named_type(MPI_Datatype type); /* predefined */
/* Whether MPI made it for itself and cannot say of what; NULL: there are no such types among what we see. */
extern int (*door_is_opaque_type)(MPI_Datatype type);
int door_look_at_type(MPI_Datatype type, MPI_Count count, struct element *element);
/* Whether MPI_Pack gives plain bytes here, as all MPIs between equal machines do. */
int door_can_pack(void);
enum direction { TO_PACKED, FROM_PACKED };
/* Packs `count` elements at `buffer` into `packed`, or the other way round. */
int door_convert(enum direction direction, void *buffer, MPI_Count count, MPI_Datatype type,
                 const struct element *element, void *packed);

#endif
