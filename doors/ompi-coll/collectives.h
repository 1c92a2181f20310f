/*
 * The collectives that the component takes: one line each, from which come the blocking, the nonblocking and the persistent function.
 *
 *   DO(name, (parameters), (their names), (the call), operation)
 */
#ifndef POLYCAST_COLLECTIVES_H
#define POLYCAST_COLLECTIVES_H

#define COMM struct ompi_communicator_t *comm
#define TYPE struct ompi_datatype_t *
#define INSIDE(...) __VA_ARGS__

/* clang-format off */
#define BLOCKS const void *send, int send_count, TYPE send_type, void *receive, int receive_count, TYPE receive_type
#define BLOCKS_NAMES send, send_count, send_type, receive, receive_count, receive_type
#define BLOCKS_DATA .comm = comm, .send = {(void *)send, send_count, send_type}, .receive = {receive, receive_count, receive_type}
#define COMBINED_DATA .comm = comm, .send = {(void *)send, count, type}, .receive = {receive, count, type}

#define EACH_COLLECTIVE(DO) \
    DO(bcast, (void *buffer, int count, TYPE type, int root, COMM), (buffer, count, type, root, comm), \
       (.collective = POLYCAST_BROADCAST, .root = root, .comm = comm, .send = {buffer, count, type}, .receive = {buffer, count, type}), MPI_OP_NULL) \
    DO(scatter, (BLOCKS, int root, COMM), (BLOCKS_NAMES, root, comm), (.collective = POLYCAST_SCATTER, .root = root, BLOCKS_DATA), MPI_OP_NULL) \
    DO(gather, (BLOCKS, int root, COMM), (BLOCKS_NAMES, root, comm), (.collective = POLYCAST_GATHER, .root = root, BLOCKS_DATA), MPI_OP_NULL) \
    DO(allgather, (BLOCKS, COMM), (BLOCKS_NAMES, comm), (.collective = POLYCAST_ALLGATHER, BLOCKS_DATA), MPI_OP_NULL) \
    DO(allgatherv, (const void *send, int send_count, TYPE send_type, void *receive, const int *counts, const int *places, TYPE receive_type, COMM), \
       (send, send_count, send_type, receive, counts, places, receive_type, comm), \
       (.collective = POLYCAST_ALLGATHER, .comm = comm, .send = {(void *)send, send_count, send_type}, .receive = {receive, 0, receive_type}, \
        .blocks = &(const struct blocks){counts, places, 0, 0}), MPI_OP_NULL) \
    DO(alltoall, (BLOCKS, COMM), (BLOCKS_NAMES, comm), (.collective = POLYCAST_ALLTOALL, BLOCKS_DATA), MPI_OP_NULL) \
    DO(barrier, (COMM), (comm), (.collective = POLYCAST_BARRIER, .comm = comm), MPI_OP_NULL) \
    DO(reduce, (const void *send, void *receive, int count, TYPE type, struct ompi_op_t *op, int root, COMM), \
       (send, receive, count, type, op, root, comm), (.collective = POLYCAST_REDUCE, .root = root, COMBINED_DATA), op) \
    DO(allreduce, (const void *send, void *receive, int count, TYPE type, struct ompi_op_t *op, COMM), \
       (send, receive, count, type, op, comm), (.collective = POLYCAST_ALLREDUCE, COMBINED_DATA), op)
/* clang-format on */

#endif
