/* ---- Datatypes ----------------------------------------------------------------------------------------- */

static int is_predefined(MPI_Datatype type) {
    int integers, addresses, types, combiner;
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    return combiner == MPI_COMBINER_NAMED;
}

/* Whether elements side by side are one stretch of bytes. Some derived types are, too, but MPI does not tell
 * which: they are packed. */
static int is_contiguous(MPI_Datatype type) {
    int size;
    MPI_Aint lower, extent;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_extent(type, &lower, &extent);
    return is_predefined(type) && size == extent;
}

/* No buffer, or a datatype that was not committed: MPI says it in its own words. It tells of the latter by
 * refusing the type, Open MPI when it sends, MPICH when it packs. */
static int is_usable(const void *buffer, MPI_Datatype type, MPI_Comm channel) {
    if (is_predefined(type)) {
        return buffer != NULL;
    }
    char nothing[1];
    int position = 0;
    return PMPI_Send(nothing, 0, type, MPI_PROC_NULL, TAG, channel) == MPI_SUCCESS &&
           PMPI_Pack(nothing, 0, type, nothing, 0, &position, channel) == MPI_SUCCESS;
}

/* Elements become packed bytes, or the other way round, in a message to this rank itself: MPI_Pack takes no
 * MPI_BOTTOM everywhere. */
static int convert(const void *from, int from_count, MPI_Datatype from_type, void *to, int to_count,
                   MPI_Datatype to_type, const struct plan *plan) {
    int me = plan->rank_at[plan->my_place];
    return PMPI_Sendrecv(from, from_count, from_type, me, TAG, to, to_count, to_type, me, TAG, plan->channel,
                         MPI_STATUS_IGNORE);
}

/* Bytes of the message: on all ranks the same, whatever their datatypes. 0 if it is empty, too long for an
 * int, or wrong, which MPI says best. */
static int count_bytes(int count, MPI_Datatype type) {
    MPI_Count size = 0;
    if (count > 0 && type != MPI_DATATYPE_NULL) {
        PMPI_Type_size_x(type, &size);
    }
    return size > 0 && size <= INT_MAX / count ? (int)size * count : 0;
}

/* ---- The broadcast ------------------------------------------------------------------------------------- */

static const struct choice *choice_for(int bytes) {
    const struct choice *choice = &choices[CHOICES - 1];
    while (choice->from_bytes > bytes) {
        choice--;
    }
    return choice;
}

/* The same on all ranks. */
static int is_served(const struct choice *choice, int bytes) {
#if TREES
    return bytes > 0 && (choice->tree_segment > 0 || choice->chain_segment > 0);
#else
    return bytes > 0 && choice->chain_segment > 0;
#endif
}

struct way {
    struct neighbours to;
    int segment; /* bytes; 0: left to MPI */
};

static struct way find_way(const struct plan *plan, const struct choice *choice, int root) {
#if TREES
    const struct tree *tree = plan->has_trees ? tree_from(plan->place_of[root]) : NULL;
    if (tree && choice->tree_segment > 0) {
        return (struct way){in_tree(plan, tree, root), choice->tree_segment};
    }
#endif
    return (struct way){in_chain(plan, root), choice->chain_segment};
}

static int send_bytes(void *data, int bytes, struct way way, const struct plan *plan) {
    struct message message = {data, bytes, way.segment, (bytes - 1) / way.segment + 1};
    return pipeline(&message, way.to, plan->channel);
}

static int send_elements(void *buffer, int count, MPI_Datatype type, int bytes, struct way way,
                         const struct plan *plan) {
    if (is_contiguous(type)) {
        return send_bytes(buffer, bytes, way, plan);
    }
    void *packed = malloc((size_t)bytes);
    if (!packed) {
        return MPI_ERR_NO_MEM;
    }
    int is_root = way.to.parent == MPI_PROC_NULL, error = MPI_SUCCESS;
    if (is_root) {
        error = convert(buffer, count, type, packed, bytes, MPI_PACKED, plan);
    }
    error = error ? error : send_bytes(packed, bytes, way, plan);
    if (!is_root && !error) {
        error = convert(packed, bytes, MPI_PACKED, buffer, count, type, plan);
    }
    free(packed);
    return error;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    int bytes = count_bytes(count, type), has_world;
    const struct choice *choice = choice_for(bytes);
    const struct plan *plan = NULL;
    struct way way = {.segment = 0};
    PMPI_Initialized(&has_world); /* with sessions alone, nothing would tell us that MPI ends */
    if (has_world && is_served(choice, bytes) && root >= 0 && comm != MPI_COMM_NULL) {
        plan = plan_of(comm);
    }
    if (plan && root < plan->ranks && is_usable(buffer, type, plan->channel)) {
        way = find_way(plan, choice, root);
    }
    if (way.segment == 0) {
        return PMPI_Bcast(buffer, count, type, root, comm);
    }
    int error = send_elements(buffer, count, type, bytes, way, plan);
    if (error) {
        PMPI_Comm_call_errhandler(comm, error);
    }
    return error;
}
