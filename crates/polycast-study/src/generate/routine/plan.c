/* ---- A communicator's plan: who stands where in the hosts' order ------------------------------------------
 *
 * Made at the first broadcast that is not left to MPI, kept as an attribute, freed with the communicator. */

struct plan {
    MPI_Comm channel; /* the same ranks; carries our messages, which so never meet the program's */
    int ranks;
    int my_place;
#if TREES
    int has_trees; /* there are as many ranks on every host as the trees are made for */
#endif
    int *place_of; /* by rank */
    int rank_at[]; /* by place */
};

/* MPI_Finalize begins with the attributes of MPI_COMM_SELF; from then on it frees communicators itself. */
static int free_plan(MPI_Comm comm, int keyval, void *attribute, void *extra) {
    static atomic_int is_finalizing;
    struct plan *plan = attribute;
    (void)keyval, (void)extra;
    if (comm == MPI_COMM_SELF) {
        is_finalizing = 1;
    }
    if (plan && !is_finalizing) {
        PMPI_Comm_free(&plan->channel);
    }
    free(plan);
    return MPI_SUCCESS;
}

/* The attribute's key. Of two threads that make one at the same time, the second gives its own back. */
static int plan_key(void) {
    static atomic_int shared = MPI_KEYVAL_INVALID;
    int key, known = shared;
    if (known != MPI_KEYVAL_INVALID) {
        return known;
    }
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_plan, &key, NULL);
    if (!atomic_compare_exchange_strong(&shared, &known, key)) {
        PMPI_Comm_free_keyval(&key);
        return known;
    }
    PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
    return key;
}

/* The index of a host, by its name as it is, else without the domain; -1 if it is not planned for. */
static int find_host(const char *name) {
    size_t length = strcspn(name, ".");
    int found = -1;
    for (int host = HOSTS - 1; host >= 0; host--) {
        if (strcmp(hosts[host], name) == 0) {
            return host;
        }
        if (strcspn(hosts[host], ".") == length && strncmp(hosts[host], name, length) == 0) {
            found = host;
        }
    }
    return found;
}

/* Orders ranks by their hosts, and those of one host by their numbers. */
static void arrange(struct plan *plan, const int host_of[]) {
    int next[HOSTS + 1] = {0}; /* the first free place on each host, once all are counted */
    for (int rank = 0; rank < plan->ranks; rank++) {
        next[host_of[rank] + 1]++;
    }
#if TREES
    plan->has_trees = 1;
    for (int host = 0; host < HOSTS; host++) {
        plan->has_trees &= next[host + 1] == ranks_on[host];
    }
#endif
    for (int host = 0; host < HOSTS; host++) {
        next[host + 1] += next[host];
    }
    for (int rank = 0; rank < plan->ranks; rank++) {
        int place = next[host_of[rank]]++;
        plan->place_of[rank] = place;
        plan->rank_at[place] = rank;
    }
}

/* Whether all ranks can take part. If not, the first that cannot says why, once. */
static int all_can(MPI_Comm comm, int me, int ranks, const char *host, const char *obstacle) {
    static atomic_flag is_said = ATOMIC_FLAG_INIT;
    int mine = obstacle ? me : ranks, first;
    PMPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, comm);
    if (first == me && !atomic_flag_test_and_set(&is_said)) {
        fprintf(stderr, "%s: left to MPI, since host %s %s\n", routine, host, obstacle);
    }
    return first == ranks;
}

/* MPI_COMM_NULL if MPI has no communicator left, for which the program's error handler must not end the job.
 * MPI_Comm_dup would call the copy callbacks of the program's attributes. */
static MPI_Comm make_channel(MPI_Comm comm) {
    MPI_Comm channel;
    MPI_Group group;
    MPI_Errhandler handler;
    PMPI_Comm_get_errhandler(comm, &handler);
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    PMPI_Comm_group(comm, &group);
    if (PMPI_Comm_create(comm, group, &channel) != MPI_SUCCESS) {
        channel = MPI_COMM_NULL;
    } else {
        PMPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
    }
    PMPI_Group_free(&group);
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    return channel;
}

/* NULL, on all ranks alike, if the communicator is left to MPI. */
static struct plan *make_plan(MPI_Comm comm) {
    int is_inter, ranks, me, length;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_size(comm, &ranks);
    if (is_inter || ranks < 2) {
        return NULL;
    }
    char name[MPI_MAX_PROCESSOR_NAME + 1] = "";
    PMPI_Comm_rank(comm, &me);
    PMPI_Get_processor_name(name, &length);
    int host = find_host(name), is_made = 0;
    int *host_of = malloc((size_t)ranks * sizeof *host_of);
    struct plan *plan = malloc(sizeof *plan + 2 * (size_t)ranks * sizeof *plan->rank_at);
    const char *obstacle = host < 0            ? "is not among those planned for"
                           : !host_of || !plan ? "has no memory left"
                                               : NULL;
    if (all_can(comm, me, ranks, name, obstacle)) {
        PMPI_Allgather(&host, 1, MPI_INT, host_of, 1, MPI_INT, comm);
        plan->ranks = ranks;
        plan->place_of = plan->rank_at + ranks;
        arrange(plan, host_of);
        plan->my_place = plan->place_of[me];
        plan->channel = make_channel(comm);
        is_made = plan->channel != MPI_COMM_NULL;
    }
    free(host_of);
    if (!is_made) {
        free(plan);
    }
    return is_made ? plan : NULL;
}

static const struct plan *plan_of(MPI_Comm comm) {
    int key = plan_key(), is_known;
    struct plan *plan;
    PMPI_Comm_get_attr(comm, key, &plan, &is_known);
    if (!is_known) {
        plan = make_plan(comm);
        PMPI_Comm_set_attr(comm, key, plan);
    }
    return plan;
}
