/* What the runtime asks of the MPI itself, for a communicator: it goes below us, which may be below others. */
#include "module.h"

#include "ompi/mca/coll/base/coll_base_util.h"

static int is_ours(const mca_coll_base_module_t *module) {
    return module && module->super.obj_class == OBJ_CLASS(polycast_module_t);
}

static const mca_coll_base_comm_coll_t *below_us(const struct ompi_communicator_t *comm) {
    const mca_coll_base_module_t *first = comm->c_coll->coll_bcast_module;
    if (is_ours(first)) {
        return &((const polycast_module_t *)first)->below;
    }
    const mca_coll_base_avail_coll_t *one;
    OPAL_LIST_FOREACH(one, comm->c_coll->module_list, mca_coll_base_avail_coll_t) {
        if (is_ours(one->ac_module)) {
            return &((const polycast_module_t *)one->ac_module)->below;
        }
    }
    return comm->c_coll;
}

#define BELOW(name, ...) below->coll_##name(__VA_ARGS__, below->coll_##name##_module)
#define TYPE_OF(type) ((MPI_Datatype)(type))
#define AT_COMM                                                                                              \
    MPI_Comm on = (MPI_Comm)comm;                                                                            \
    const mca_coll_base_comm_coll_t *below = below_us(on)

static int stock_bcast(void *buffer, int count, handle type, int root, handle comm) {
    AT_COMM;
    return BELOW(bcast, buffer, count, TYPE_OF(type), root, on);
}

static int stock_barrier(handle comm) {
    AT_COMM;
    return BELOW(barrier, on);
}

static int stock_scatter(const void *send, int send_count, handle send_type, void *receive, int receive_count,
                         handle receive_type, int root, handle comm) {
    AT_COMM;
    return BELOW(scatter, send, send_count, TYPE_OF(send_type), receive, receive_count, TYPE_OF(receive_type),
                 root, on);
}

static int stock_gather(const void *send, int send_count, handle send_type, void *receive, int receive_count,
                        handle receive_type, int root, handle comm) {
    AT_COMM;
    return BELOW(gather, send, send_count, TYPE_OF(send_type), receive, receive_count, TYPE_OF(receive_type),
                 root, on);
}

static int stock_allgather(const void *send, int send_count, handle send_type, void *receive,
                           int receive_count, handle receive_type, handle comm) {
    AT_COMM;
    return BELOW(allgather, send, send_count, TYPE_OF(send_type), receive, receive_count,
                 TYPE_OF(receive_type), on);
}

static int stock_alltoall(const void *send, int send_count, handle send_type, void *receive,
                          int receive_count, handle receive_type, handle comm) {
    AT_COMM;
    return BELOW(alltoall, send, send_count, TYPE_OF(send_type), receive, receive_count,
                 TYPE_OF(receive_type), on);
}

static int stock_reduce(const void *send, void *receive, int count, handle type, handle op, int root,
                        handle comm) {
    AT_COMM;
    return BELOW(reduce, send, receive, count, TYPE_OF(type), (MPI_Op)op, root, on);
}

static int stock_allreduce(const void *send, void *receive, int count, handle type, handle op, handle comm) {
    AT_COMM;
    return BELOW(allreduce, send, receive, count, TYPE_OF(type), (MPI_Op)op, on);
}

struct entries polycast_stock(void) {
    return (struct entries){.Bcast = stock_bcast,
                            .Barrier = stock_barrier,
                            .Scatter = stock_scatter,
                            .Gather = stock_gather,
                            .Allgather = stock_allgather,
                            .Alltoall = stock_alltoall,
                            .Reduce = stock_reduce,
                            .Allreduce = stock_allreduce};
}
