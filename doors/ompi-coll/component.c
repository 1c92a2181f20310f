/*
 * The component's life, as Open MPI has it:
 *
 *   register      what `ompi_info --param coll polycast --level 9` lists; values become polycast's environment variables
 *   open          early in MPI_Init, before the ranks exchange what the others need to know: this one has the component
 *   init_query    later: may it be used at all
 *   comm_query    for each new communicator: a module and its priority, or none
 *   enable        module.c: the module learns who would serve without it
 *   (bottom of MPI_Init)   beginning.c: the ranks settle whether polycast serves; until then, and if not, modules hand on every call
 */
#include "component.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/hook/base/base.h"
#include "opal/mca/base/mca_base_var.h"

/* Above `tuned` (30) and below what watches or orders collectives (`sync`, `monitoring`). */
#define USUAL_PRIORITY 40

static int priority = USUAL_PRIORITY;

/* Each is a parameter coll_polycast_NAME, and the variable POLYCAST_NAME. */
static const struct {
    const char *name, *about;
} settings[] = {
    {"bcast", "one algorithm for all broadcasts, as in chain:segment=8KiB, or stock"},
    {"scatter", "the same for MPI_Scatter"},
    {"gather", "the same for MPI_Gather"},
    {"allgather", "the same for MPI_Allgather and MPI_Allgatherv"},
    {"alltoall", "the same for MPI_Alltoall"},
    {"barrier", "the same for MPI_Barrier"},
    {"reduce", "the same for MPI_Reduce"},
    {"allreduce", "the same for MPI_Allreduce"},
    {"table", "a file of rules that choose algorithms by ranks, nodes and bytes"},
    {"topology", "a file with the switches and hosts, or off"},
    {"params", "a file of times that `polycast measure` found"},
    {"sums", "auto, canonical or mpi: which reductions are served whose bits depend on the order"},
    {"trials", "on or off: the first calls of each size try what polycast chooses and stock by turns"},
    {"tune", "a time such as 20s, on or off: ranks measure which way serves best"},
    {"cache", "the folder where jobs leave each other what their trials found, or off"},
    {"shared_memory", "on or off: whether the ranks of a node share memory of polycast's"},
    {"multicast", "on, off, verbs, ipv4, ipv4-global or ipv6: which protocol multicast uses"},
    {"net", "the interface of multicast: names that begin so, =this one, ^none of these"},
    {"madcap", "the server that gives out multicast addresses"},
    {"report", "on, off or a file: what polycast did, when the job ends"},
    {"trace", "the folder where each rank leaves when its calls began and returned, or off"},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static char *values[SETTINGS];

/* Layouts may change within a release line, or with its options: what we were built with, and what runs. */
#define IS_AS_BUILT(type) (OBJ_CLASS(type)->cls_sizeof == sizeof(type))

static int register_parameters(void);
static int open_component(void);
static int init_query(bool enable_progress_threads, bool enable_mpi_threads);
static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority);

/* Open MPI looks for this name. */
__attribute__((visibility("default"))) const mca_coll_base_component_t mca_coll_polycast_component = {
    .collm_version =
        {
#if OMPI_MAJOR_VERSION == 4
            MCA_COLL_BASE_VERSION_2_0_0,
#else
            MCA_COLL_BASE_VERSION_2_4_0,
#endif
            .mca_component_name = "polycast",
            MCA_BASE_MAKE_VERSION(component, POLYCAST_MAJOR, POLYCAST_MINOR, POLYCAST_RELEASE),
            .mca_open_component = open_component,
            .mca_register_component_params = register_parameters,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};

/* The runtime reads its environment only, and nothing of it has read anything yet. */
static void set_variable(const char *name, const char *value) {
    char variable[64] = "POLYCAST_";
    size_t length = strlen(variable);
    for (; *name && length < sizeof variable - 1; name++) {
        variable[length++] = (char)toupper((unsigned char)*name);
    }
    variable[length] = '\0';
    setenv(variable, value, 1);
}

static int register_parameters(void) {
    const mca_base_component_t *component = &mca_coll_polycast_component.collm_version;
    mca_base_component_var_register(
        component, "priority", "Priority of the polycast component; 0 or less: it is not used",
        MCA_BASE_VAR_TYPE_INT, NULL, 0, 0, OPAL_INFO_LVL_6, MCA_BASE_VAR_SCOPE_READONLY, &priority);
    for (int i = 0; i < SETTINGS; i++) {
        mca_base_component_var_register(component, settings[i].name, settings[i].about,
                                        MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_6,
                                        MCA_BASE_VAR_SCOPE_READONLY, &values[i]);
    }
    return OMPI_SUCCESS;
}

static int fits(void) {
    return IS_AS_BUILT(ompi_communicator_t) && IS_AS_BUILT(ompi_group_t) && IS_AS_BUILT(ompi_datatype_t) &&
           IS_AS_BUILT(mca_coll_base_module_t) && IS_AS_BUILT(ompi_coll_base_nbc_request_t);
}

/* In a program with more rights than its user polycast reads nothing from outside. */
static int open_component(void) {
    if (priority <= 0 || getauxval(AT_SECURE) != 0) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    if (!fits()) {
        const char *rank = getenv("OMPI_COMM_WORLD_RANK");
        if (!rank || strcmp(rank, "0") == 0) {
            fprintf(
                stderr,
                "polycast: warning: the component for Open MPI was built with headers of %s, which "
                "this one's insides do not match; build it with its own; the stock MPI serves every call\n",
                OMPI_VERSION);
        }
        return OMPI_ERR_NOT_AVAILABLE;
    }
    for (int i = 0; i < SETTINGS; i++) {
        if (values[i] && *values[i]) {
            set_variable(settings[i].name, values[i]);
        }
    }
    polycast_announce();
    return OMPI_SUCCESS;
}

static int init_query(bool enable_progress_threads, bool enable_mpi_threads) {
    static ompi_hook_base_component_t hooks = {.hookm_mpi_init_bottom = polycast_begin_all};
    (void)enable_progress_threads, (void)enable_mpi_threads;
    return ompi_hook_base_register_callbacks(&hooks);
}

/* Of MPI_COMM_WORLD nobody knows yet whether it will be served. */
static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *at) {
    const int has_begun = ompi_mpi_state >= OMPI_MPI_STATE_INIT_COMPLETED;
    *at = priority;
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2 || (has_begun && !polycast_entrance)) {
        return NULL;
    }
    return polycast_module_new();
}
