/* ---- Who sends to whom --------------------------------------------------------------------------------- */

/* Ranks. MPI_PROC_NULL where there is none: messages from and to it are done at once. */
struct neighbours {
    int parent, child[2];
};

/* Along the hosts' order: begins at the root, and goes on at the first place after the last one. */
static struct neighbours in_chain(const struct plan *plan, int root) {
    int ranks = plan->ranks, me = plan->my_place;
    int distance = (me - plan->place_of[root] + ranks) % ranks;
    return (struct neighbours){
        .parent = distance > 0 ? plan->rank_at[(me + ranks - 1) % ranks] : MPI_PROC_NULL,
        .child = {distance < ranks - 1 ? plan->rank_at[(me + 1) % ranks] : MPI_PROC_NULL, MPI_PROC_NULL},
    };
}
#if TREES

/* The tree for broadcasts from this place, or NULL. */
static const struct tree *tree_from(int place) {
    for (int i = 0; i < TREES; i++) {
        int offset = place - trees[i].first;
        if (offset >= 0 && offset < trees[i].hosts * trees[i].per_host) {
            return &trees[i];
        }
    }
    return NULL;
}

/* Turns the circle of the tree's like hosts, and that of the ranks on each of them. No link can tell them
 * apart, so the tree stays free of contention. */
static int turned(const struct tree *tree, int place, int by_hosts, int by_ranks) {
    int offset = place - tree->first;
    if (offset < 0 || offset >= tree->hosts * tree->per_host) {
        return place;
    }
    int host = (offset / tree->per_host + by_hosts) % tree->hosts;
    int rank = (offset % tree->per_host + by_ranks) % tree->per_host;
    return tree->first + host * tree->per_host + rank;
}

static struct neighbours in_tree(const struct plan *plan, const struct tree *tree, int root) {
    int offset = plan->place_of[root] - tree->first;
    int by_hosts = offset / tree->per_host, by_ranks = offset % tree->per_host;
    int me = turned(tree, plan->my_place, tree->hosts - by_hosts, tree->per_host - by_ranks);
    int ranks[3];
    for (int i = 0; i < 3; i++) {
        int place = tree->at[me][i];
        ranks[i] = place == NONE ? MPI_PROC_NULL : plan->rank_at[turned(tree, place, by_hosts, by_ranks)];
    }
    return (struct neighbours){.parent = ranks[0], .child = {ranks[1], ranks[2]}};
}
#endif
