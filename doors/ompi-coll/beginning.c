/*
 * What is done when MPI begins: the ranks settle whether polycast serves.
 *
 * A folder that is missing on a node is no error to Open MPI, so ranks may lack the component, and such a rank cannot be asked. Each tells by
 * what the ranks exchange before MPI_Init is over that it has it, under a key; then each looks for the key of its neighbours in a tree:
 *
 *        0          whether all have it goes up, and the answer comes down. A rank that lacks it sends and receives nothing; those above
 *       / \         and below it know that, and say no, or take no for the answer.
 *      1   2
 *
 * Ranks that all have it vote, as those with the preloaded object do.
 */
#define _GNU_SOURCE
#include "module.h"

#include <dlfcn.h>
#include <stdio.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/proc/proc.h"
#if OMPI_MAJOR_VERSION == 4
#include "opal/mca/pmix/pmix.h"
#define CAN_ANNOUNCE (opal_pmix.put != NULL)
#define TO_ALL OPAL_PMIX_GLOBAL
#define NUMBER OPAL_UINT32
#else
#include "opal/mca/pmix/pmix-internal.h"
#define CAN_ANNOUNCE PMIx_Initialized()
#define TO_ALL PMIX_GLOBAL
#define NUMBER PMIX_UINT32
#endif

#include "patience.h"
#include "vote.h"

#define EXPORT __attribute__((visibility("default")))

const struct entrance *polycast_entrance;

static char key[] = "polycast.coll";

/* Nobody else's messages are on their way while MPI begins, and none of these is when it has begun. */
#define TAG 4711

void polycast_announce(void) {
    uint32_t version = 1, *is_there = &version;
    int error;
    if (!CAN_ANNOUNCE) {
        return; /* ompi_info */
    }
    OPAL_MODEX_SEND_VALUE(error, TO_ALL, key, is_there, NUMBER);
    (void)error; /* Then this rank is taken to lack it. */
}

static int has_component(int rank) {
    opal_process_name_t name = ompi_group_get_proc_name(ompi_mpi_comm_world.comm.c_local_group, rank);
    uint32_t version = 0, *found = &version;
    int error;
    OPAL_MODEX_RECV_VALUE_IMMEDIATE(error, key, &name, &found, NUMBER);
    return error == OPAL_SUCCESS;
}

static int have_all_the_component(int rank, int size) {
    const int parent = (rank - 1) / 2, has_parent = rank > 0 && has_component(parent);
    int have_all = has_component(rank), answer, is_known[2] = {0};
    for (int i = 0; i < 2 && 2 * rank + 1 + i < size; i++) {
        const int child = 2 * rank + 1 + i;
        int have_those_below = 0;
        is_known[i] = has_component(child);
        if (is_known[i]) {
            PMPI_Recv(&have_those_below, 1, MPI_INT, child, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        have_all = have_all && have_those_below;
    }
    answer = rank == 0 && have_all;
    if (has_parent) {
        PMPI_Send(&have_all, 1, MPI_INT, parent, TAG, MPI_COMM_WORLD);
        PMPI_Recv(&answer, 1, MPI_INT, parent, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        if (is_known[i]) {
            PMPI_Send(&answer, 1, MPI_INT, 2 * rank + 1 + i, TAG, MPI_COMM_WORLD);
        }
    }
    return answer;
}

static int least(const int64_t *mine, int64_t *all, int count) {
    return PMPI_Allreduce(mine, all, count, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD);
}

/* What programs may ask; as of the preloaded object. */
static struct served served;

EXPORT int polycast_configure(const char *name, const char *value) {
    return served.configure ? served.configure(name, value) : -1;
}

EXPORT int polycast_choice_of(const char *collective, handle comm, int64_t bytes, char *text, int size) {
    return served.choice ? served.choice(collective, comm, bytes, text, size) : -1;
}

EXPORT int polycast_choice(handle comm, int64_t bytes, char *text, int size) {
    return polycast_choice_of("bcast", comm, bytes, text, size);
}

/* Open MPI opens components privately; programs look for these functions everywhere. */
static void become_global(void) {
    Dl_info self;
    if (dladdr((void *)&polycast_configure, &self) && self.dli_fname) {
        dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    }
}

/* With the preloaded object, too, a call is to be served once. */
static void let_give_way(void) {
    give_way_function *give_way = (give_way_function *)dlsym(RTLD_DEFAULT, "polycast_give_way");
    if (give_way) {
        give_way(served.configure, served.choice);
    }
}

static int is_first_that_has_it(int rank) {
    int other = 0;
    while (other < rank && !has_component(other)) {
        other++;
    }
    return other == rank;
}

static void warn(const char *what) {
    fprintf(stderr, "polycast: warning: %s; the stock MPI serves every call\n", what);
}

/* Open MPI makes such types for calls of its own: an MPI_Intercomm_create broadcasts one. */
static int is_opaque_type(MPI_Datatype type) {
    return !ompi_datatype_is_predefined(type) && !type->args;
}

static const struct insides insides = {.is_opaque_type = is_opaque_type,
                                       .has_completed = polycast_has_completed,
                                       .wait_for_flights = polycast_wait_for_flights};

static void begin(int rank, int size) {
    const struct entrance *entrance = polycast_door_enter(POLYCAST_INTERFACE_VERSION, &insides);
    const struct entries stock = polycast_stock();
    enum standing standing = STANDING_NO_DOOR;
    if (entrance) {
        entrance->open(&stock, &served);
        standing = served.begin ? STANDING_READY : STANDING_OFF;
    }
    const struct verdict verdict =
        vote(rank, size, least, standing, served.build_identity,
             "the component and the door are of different versions of polycast; build them again");
    if (*verdict.warning) {
        warn(verdict.warning);
    }
    if (verdict.is_served) {
        let_give_way();
        become_global();
        served.begin();
        polycast_entrance = entrance;
    }
}

void polycast_begin_all(int argc, char **argv, int requested, int *provided) {
    int rank, size;
    (void)argc, (void)argv, (void)requested, (void)provided;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        return;
    }
    const struct waiting waiting = {rank, size,
                                    "ranks that have polycast's component for Open MPI and are late",
                                    "Do they run, and do MPI's messages reach them? `mpirun --mca coll "
                                    "^polycast` goes on without polycast"};
    patience_begins(&waiting);
    if (have_all_the_component(rank, size)) {
        begin(rank, size);
    } else if (is_first_that_has_it(rank)) {
        warn("some ranks do not have polycast's component for Open MPI; install it on all nodes");
    }
    patience_ends();
}
