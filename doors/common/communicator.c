/*
 * The door's state of a communicator: an attribute, made at its first broadcast, freed with it.
 *
 *   MPI_Comm_dup, _split    the attribute is not copied: the new communicator gets its own
 *   MPI_Comm_free           the delete callback frees the state
 *   MPI_Finalize            MPI deletes the attributes of MPI_COMM_SELF first of all, in the reverse order of their
 *                           making: ours, made in MPI_Init, is the last, and our signal to report. What broadcasts
 *                           later gets stock.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "door.h"

static int state_keyval = MPI_KEYVAL_INVALID;
static int finalize_keyval = MPI_KEYVAL_INVALID;

/* They hang on communicators that are left to the stock MPI for ever, so that these are looked at only once. */
static struct communicator stock_for_ever[] = {
    {.left_because = POLYCAST_BECAUSE_INTERCOMMUNICATOR},
    {.left_because = POLYCAST_BECAUSE_ONE_RANK},
    {.left_because = POLYCAST_BECAUSE_NOT_ATTACHED},
    {.left_because = POLYCAST_BECAUSE_OUTSIDE},
};

static int is_stock_for_ever(const struct communicator *state) {
    return state == &stock_for_ever[state->left_because];
}

static int is_finalizing;
int door_attaches_together;

int door_is_over(void) {
    return __atomic_load_n(&is_finalizing, __ATOMIC_RELAXED);
}

/* How often a communicator got a state, or was freed that had one: what a thread remembers is of no use afterwards, for MPI may give the
 * handle of one that is gone to another. */
static unsigned long changes = 1;

static void forget_remembered(void) {
    /* Release: with the acquire in door_known_communicator. */
    __atomic_fetch_add(&changes, 1, __ATOMIC_RELEASE);
}

static pthread_mutex_t alive_lock = PTHREAD_MUTEX_INITIALIZER;
static struct communicator *alive;

static void add_to_alive(struct communicator *state) {
    pthread_mutex_lock(&alive_lock);
    state->next = alive;
    if (alive) {
        alive->previous = state;
    }
    alive = state;
    pthread_mutex_unlock(&alive_lock);
}

static void remove_from_alive(struct communicator *state) {
    pthread_mutex_lock(&alive_lock);
    if (state->previous) {
        state->previous->next = state->next;
    } else {
        alive = state->next;
    }
    if (state->next) {
        state->next->previous = state->previous;
    }
    pthread_mutex_unlock(&alive_lock);
}

static void free_memory(struct communicator *state) {
    free(state->requests);
    free(state->statuses);
    free(state->indices);
    free(state->is_receive);
    free(state);
}

/* While MPI finalizes, it frees what is left itself, and deletes the attributes that lead to the states. */
void door_close(void *communicator) {
    struct communicator *state = communicator;
    if (door_is_over()) {
        return;
    }
    free_memory(state);
}

void (*door_wait_for_flights)(const struct communicator *state);

static int free_state(MPI_Comm comm, int keyval, void *attribute, void *extra) {
    struct communicator *state = attribute;
    (void)comm, (void)keyval, (void)extra;
    forget_remembered();
    if (is_stock_for_ever(state)) {
        return MPI_SUCCESS;
    }
    if (state->is_new) {
        free_memory(state);
        return MPI_SUCCESS;
    }
    if (state->flights > 0) {
        door_wait_for_flights(state);
    }
    remove_from_alive(state);
    if (state->runtime) {
        /* It may be looked at for longer than the communicator is there. */
        state->user = MPI_COMM_NULL;
        polycast_detach(state->runtime, 0);
    } else {
        free_memory(state);
    }
    return MPI_SUCCESS;
}

/* What is still alive is counted as it is; MPI frees the communicators themselves. */
static int at_finalize(MPI_Comm comm, int keyval, void *attribute, void *extra) {
    int world_rank = 0;
    (void)comm, (void)keyval, (void)attribute, (void)extra;
    __atomic_store_n(&is_finalizing, 1, __ATOMIC_RELAXED);
    forget_remembered();
    PMPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    pthread_mutex_lock(&alive_lock);
    for (struct communicator *state = alive; state; state = state->next) {
        polycast_detach(state->runtime, 1);
        state->runtime = NULL;
    }
    pthread_mutex_unlock(&alive_lock);
    polycast_finalize(&door_functions, world_rank);
    return MPI_SUCCESS;
}

static void create_keyvals(void) {
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &finalize_keyval, NULL);
    PMPI_Comm_set_attr(MPI_COMM_SELF, finalize_keyval, NULL);
    door_functions.capabilities =
        (door_can_pack() ? POLYCAST_CAN_PACK : 0) | (door_gives_way() ? POLYCAST_GIVES_WAY : 0);
    int keyval;
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_state, &keyval, NULL);
    __atomic_store_n(&state_keyval, keyval, __ATOMIC_RELEASE);
}

/* MPI looks attributes up under a lock, which takes longer than a short message on a node: each thread remembers what it has found of the
 * communicator of its last call. */
enum known door_known_communicator(MPI_Comm comm, struct communicator **state) {
    static _Thread_local struct {
        MPI_Comm comm;
        /* NULL: it has none. */
        struct communicator *state;
        unsigned long changes;
    } last;
    unsigned long now = __atomic_load_n(&changes, __ATOMIC_ACQUIRE);
    if (last.comm == comm && last.changes == now) {
        *state = last.state;
        return last.state ? KNOWN : UNKNOWN;
    }
    if (door_is_over()) {
        return OVER;
    }
    int keyval = __atomic_load_n(&state_keyval, __ATOMIC_ACQUIRE);
    int is_known = 0;
    if (keyval == MPI_KEYVAL_INVALID || PMPI_Comm_get_attr(comm, keyval, state, &is_known) != MPI_SUCCESS) {
        return UNKNOWN;
    }
    last.comm = comm;
    last.state = is_known ? *state : NULL;
    last.changes = now;
    return is_known ? KNOWN : UNKNOWN;
}

int door_world_ranks(MPI_Comm comm, int size, int *world_ranks) {
    MPI_Group group, of_world;
    int *ranks = malloc((size_t)size * sizeof *ranks);
    int are_all = 0;
    if (ranks && PMPI_Comm_group(comm, &group) == MPI_SUCCESS) {
        PMPI_Comm_group(MPI_COMM_WORLD, &of_world);
        for (int i = 0; i < size; i++) {
            ranks[i] = i;
        }
        are_all = PMPI_Group_translate_ranks(group, size, ranks, of_world, world_ranks) == MPI_SUCCESS;
        for (int i = 0; i < size; i++) {
            are_all = are_all && world_ranks[i] != MPI_UNDEFINED;
        }
        PMPI_Group_free(&of_world);
        PMPI_Group_free(&group);
    }
    free(ranks);
    return are_all;
}

/* Whether the ranks of MPI_COMM_WORLD have told each other what they are, and can be served. */
enum { NOT_BEGUN, SERVED, LEFT_TO_STOCK };
static int standing = NOT_BEGUN;

static void set_standing(int now) {
    __atomic_store_n(&standing, now, __ATOMIC_RELEASE);
}

/* Collective over MPI_COMM_WORLD. */
static int are_all_served(struct communicator *world) {
    if (world->size < 2) {
        /* Nothing is to be served, but what was asked for is counted and recorded. */
        return polycast_begin(&door_functions, world, world->rank, world->size, 0, 0);
    }
    if (!door_open_private()) {
        if (world->rank == 0) {
            fprintf(stderr, "polycast: warning: MPI cannot make a communicator for polycast's messages; the "
                            "stock MPI serves every call\n");
        }
        return 0;
    }
    int *tag_most, is_set, level;
    if (PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_most, &is_set) != MPI_SUCCESS || !is_set) {
        is_set = 0;
    }
    if (PMPI_Query_thread(&level) != MPI_SUCCESS) {
        level = MPI_THREAD_MULTIPLE;
    }
    return polycast_begin(&door_functions, world, world->rank, world->size, is_set ? *tag_most : 0,
                          level == MPI_THREAD_MULTIPLE);
}

static void begin_world(void) {
    static struct communicator world;
    world.user = MPI_COMM_WORLD;
    PMPI_Comm_rank(MPI_COMM_WORLD, &world.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &world.size);
    set_standing(are_all_served(&world) ? SERVED : LEFT_TO_STOCK);
}

/* MPI_Init did not come by. The first broadcast on all ranks stands in for it, unless several threads could each have a first one. */
static void begin_late(MPI_Comm comm) {
    int likeness = MPI_UNEQUAL, level = MPI_THREAD_MULTIPLE;
    PMPI_Comm_compare(comm, MPI_COMM_WORLD, &likeness);
    PMPI_Query_thread(&level);
    if (level == MPI_THREAD_MULTIPLE) {
        set_standing(LEFT_TO_STOCK);
    } else if (likeness == MPI_IDENT || likeness == MPI_CONGRUENT) {
        begin_world();
    }
}

/* One of `stock_for_ever` if the communicator is not one that we serve, or on lack of memory. */
static struct communicator *new_state(MPI_Comm comm) {
    int is_inter = 0, size = 0;
    if (PMPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter) {
        return &stock_for_ever[POLYCAST_BECAUSE_INTERCOMMUNICATOR];
    }
    if (PMPI_Comm_size(comm, &size) != MPI_SUCCESS || size < 2) {
        return &stock_for_ever[POLYCAST_BECAUSE_ONE_RANK];
    }
    /* There is no private communicator; a process that was alone in its MPI_COMM_WORLD may have merged with others. */
    if (__atomic_load_n(&standing, __ATOMIC_ACQUIRE) != SERVED) {
        return &stock_for_ever[POLYCAST_BECAUSE_NOT_ATTACHED];
    }
    struct communicator *state = calloc(1, sizeof *state);
    if (!state) {
        return &stock_for_ever[POLYCAST_BECAUSE_NOT_ATTACHED];
    }
    state->is_new = 1;
    state->user = comm;
    state->size = size;
    state->passing = polycast_first_passing(size);
    PMPI_Comm_rank(comm, &state->rank);
    return state;
}

/* Whether the runtime has it now; else why not, for ever. Ranks outside this process's MPI_COMM_WORLD (spawned, connected) are none that
 * anybody knows; each rank of such a communicator finds some, so all decide alike without a word. */
static int is_attached(struct communicator *state, uint32_t *because) {
    int *world_ranks = malloc((size_t)state->size * sizeof *world_ranks);
    *because = POLYCAST_BECAUSE_OUTSIDE;
    if (world_ranks && door_world_ranks(state->user, state->size, world_ranks)) {
        *because = POLYCAST_BECAUSE_NOT_ATTACHED;
        if (__atomic_load_n(&standing, __ATOMIC_ACQUIRE) == SERVED) {
            polycast_attach(&door_functions, state, state->rank, state->size, world_ranks, state->counts,
                            &state->runtime);
        }
    }
    free(world_ranks);
    return state->runtime != NULL;
}

struct communicator *door_attach(struct communicator *state) {
    uint32_t because;
    if (is_attached(state, &because)) {
        state->is_new = 0;
        state->passing = state->runtime->passing;
        add_to_alive(state);
        return state;
    }
    /* MPI frees what was there. */
    struct communicator *left = &stock_for_ever[because];
    return PMPI_Comm_set_attr(state->user, state_keyval, left) == MPI_SUCCESS ? left : NULL;
}

static void make_keyvals(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, create_keyvals);
}

void door_begin(void) {
    make_keyvals();
    begin_world();
}

/* Whether it has begun now. In the sessions model there is no MPI_COMM_SELF to tell us of the end, and a session may outlive it. */
static int has_begun_late(MPI_Comm comm) {
    int has_begun, has_ended;
    if (PMPI_Initialized(&has_begun) != MPI_SUCCESS || !has_begun ||
        PMPI_Finalized(&has_ended) != MPI_SUCCESS || has_ended) {
        return 0;
    }
    make_keyvals();
    begin_late(comm);
    return __atomic_load_n(&standing, __ATOMIC_ACQUIRE) != NOT_BEGUN;
}

static _Thread_local MPI_Comm going = MPI_COMM_NULL;

MPI_Comm door_going(MPI_Comm comm) {
    const MPI_Comm before = going;
    going = comm;
    /* What callbacks have found of it is nothing for the next one with its handle. */
    forget_remembered();
    return before;
}

/* NULL also for one that is going: its state has gone before, and MPI would never say that a new one is to go. */
struct communicator *door_communicator(MPI_Comm comm) {
    if (comm == going) {
        return NULL;
    }
    if (__atomic_load_n(&standing, __ATOMIC_ACQUIRE) == NOT_BEGUN && !has_begun_late(comm)) {
        return NULL;
    }
    struct communicator *state = new_state(comm);
    if (PMPI_Comm_set_attr(comm, state_keyval, state) != MPI_SUCCESS) {
        return NULL;
    }
    forget_remembered();
    return state;
}
