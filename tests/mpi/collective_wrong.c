/* Calls that all ranks make, and in which something is wrong to one rank alone: no buffer, a type that is not committed, a count that is none, what is
 * sent where it is to be received. That rank gets its MPI's error, its handler is called once and nothing is received; the others' calls end
 * well, and so do all calls afterwards. What the MPI does not mind is served.
 *
 * `collective_wrong N`: each collective is called N times before. Not for the bare library, where the others wait. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { BROADCAST, SCATTER, GATHER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, COLLECTIVES };
enum { MISSING, NOT_COMMITTED, NEGATIVE, ONE_PLACE, KINDS };
static const char *const names[] = {"broadcast", "scatter", "gather",   "allgather",
                                    "alltoall",  "reduce",  "allreduce"};
static const char *const kinds[] = {"no buffer", "a type that is not committed", "a negative count",
                                    "one place"};

enum { INTS = 100, UNTOUCHED = -7 };

struct side {
    int *at;
    int count;
    MPI_Datatype type;
};

static MPI_Comm comm;
static MPI_Datatype not_committed;
static int *sent, *received, rank, size, handler_calls;

static int call(int collective, struct side send, struct side receive, int root) {
    switch (collective) {
    case BROADCAST:
        return MPI_Bcast(rank == root ? send.at : receive.at, rank == root ? send.count : receive.count,
                         rank == root ? send.type : receive.type, root, comm);
    case SCATTER:
        return MPI_Scatter(send.at, send.count, send.type, receive.at, receive.count, receive.type, root,
                           comm);
    case GATHER:
        return MPI_Gather(send.at, send.count, send.type, receive.at, receive.count, receive.type, root,
                          comm);
    case ALLGATHER:
        return MPI_Allgather(send.at, send.count, send.type, receive.at, receive.count, receive.type, comm);
    case ALLTOALL:
        return MPI_Alltoall(send.at, send.count, send.type, receive.at, receive.count, receive.type, comm);
    case REDUCE:
        return MPI_Reduce(send.at, receive.at, receive.count, receive.type, MPI_SUM, root, comm);
    default:
        return MPI_Allreduce(send.at, receive.at, receive.count, receive.type, MPI_SUM, comm);
    }
}

static int is_combined(int collective) {
    return collective == REDUCE || collective == ALLREDUCE;
}

static int sends(int collective, int root) {
    return rank == root || (collective != BROADCAST && collective != SCATTER);
}

static int receives(int collective, int root) {
    return collective == BROADCAST ? rank != root
                                   : rank == root || (collective != GATHER && collective != REDUCE);
}

/* What rank `from` hands in for rank `to`. */
static int value(int from, int to, int i, int seed) {
    return 1000000 * from + 10000 * to + i + seed;
}

static void fill(int collective, int seed) {
    for (int to = 0; to < size; to++)
        for (int i = 0; i < INTS; i++) {
            const int is_of_ranks = collective == SCATTER || collective == ALLTOALL;
            sent[to * INTS + i] = value(rank, is_of_ranks ? to : 0, i, seed);
            received[to * INTS + i] = UNTOUCHED;
        }
}

static int due(int collective, int block, int i, int root, int seed) {
    int sum = 0;
    switch (collective) {
    case BROADCAST:
        return value(root, 0, i, seed);
    case SCATTER:
        return value(root, rank, i, seed);
    case GATHER:
    case ALLGATHER:
        return value(block, 0, i, seed);
    case ALLTOALL:
        return value(block, rank, i, seed);
    default:
        for (int from = 0; from < size; from++)
            sum += value(from, 0, i, seed);
        return sum;
    }
}

static void right(int collective, int root, int seed, const char *before) {
    const int blocks = collective == GATHER || collective == ALLGATHER || collective == ALLTOALL ? size : 1;
    const struct side send = {sent, INTS, MPI_INT}, receive = {received, INTS, MPI_INT};
    fill(collective, seed);
    const int code = call(collective, send, receive, root);
    CHECK(code == MPI_SUCCESS, "%s after %s: code %d", names[collective], before, code);
    for (int block = 0; receives(collective, root) && block < blocks; block++)
        for (int i = 0; i < INTS; i++)
            CHECK(received[block * INTS + i] == due(collective, block, i, root, seed),
                  "%s of root %d after %s: element %d of block %d is %d", names[collective], root, before, i,
                  block, received[block * INTS + i]);
}

/* The class of the error on the rank to which it is wrong. */
static int error_of(int collective, int kind) {
    switch (kind) {
    case NOT_COMMITTED:
        return MPI_ERR_TYPE;
    case NEGATIVE:
        return MPI_ERR_COUNT;
#ifdef OPEN_MPI
    case ONE_PLACE:
        return is_combined(collective) ? MPI_ERR_ARG : MPI_SUCCESS;
    default:
        return MPI_SUCCESS;
#else
    default:
        (void)collective;
        return MPI_ERR_BUFFER;
#endif
    }
}

/* By the sizes of the other side all ranks know which call it is, or of this one where only the buffer or the type's standing is wrong. 0: there is no
 * such case. */
static int make_wrong(int collective, int kind, int is_sent, int root, struct side *send,
                      struct side *receive) {
    struct side *wrong = is_sent ? send : receive;
    const int is_told = collective == BROADCAST || (collective == SCATTER && (is_sent || rank != root)) ||
                        (collective == GATHER && (!is_sent || rank != root)) ||
                        (collective > SCATTER && collective != GATHER && !is_sent);
    switch (kind) {
    case MISSING:
        wrong->at = NULL;
        return 1;
    case NOT_COMMITTED:
        wrong->type = not_committed;
        return !is_combined(collective);
    case NEGATIVE:
        wrong->count = -1;
        return !is_combined(collective) && !is_told;
    default:
#ifdef OPEN_MPI
        if (collective == ALLREDUCE)
            return 0; /* its error goes to MPI_COMM_WORLD, whatever the communicator, and ends the job */
#endif
        if (is_sent || collective == BROADCAST || !sends(collective, root))
            return 0;
        if (collective == SCATTER)
            receive->at = send->at + rank * INTS;
        else
            send->at = receive->at + (collective == GATHER || collective == ALLGATHER ? rank * INTS : 0);
        return 1;
    }
}

static void check_untouched(int collective, const char *kind) {
    for (int i = 0; i < size * INTS; i++)
        CHECK(received[i] == UNTOUCHED, "%s, %s: element %d was received: %d", names[collective], kind, i,
              received[i]);
}

static void wrong(int collective, int kind, int is_sent, int root, int wrong_rank) {
    struct side send = {sent, INTS, MPI_INT}, receive = {received, INTS, MPI_INT};
    int is_case = 0, class = MPI_SUCCESS;
    fill(collective, kind);
    if (rank == wrong_rank && (is_sent ? sends(collective, root) : receives(collective, root)))
        is_case = make_wrong(collective, kind, is_sent, root, &send, &receive);
    MPI_Bcast(&is_case, 1, MPI_INT, wrong_rank, MPI_COMM_WORLD);
    if (!is_case)
        return;
    handler_calls = 0;
    const int code = call(collective, send, receive, root);
    MPI_Error_class(code, &class);
    const int expected = rank == wrong_rank ? error_of(collective, kind) : MPI_SUCCESS;
    CHECK(class == expected, "%s of root %d, %s on rank %d, %s: class %d, expected %d", names[collective],
          root, kinds[kind], wrong_rank, is_sent ? "sent" : "received", class, expected);
    CHECK(handler_calls == (expected != MPI_SUCCESS), "%s, %s: the handler was called %d times",
          names[collective], kinds[kind], handler_calls);
    if (expected != MPI_SUCCESS)
        check_untouched(collective, kinds[kind]);
    right(collective, root, kind, kinds[kind]);
}

static void handler(MPI_Comm *of, int *code, ...) {
    (void)of, (void)code;
    handler_calls++;
}

int main(int argc, char **argv) {
    MPI_Errhandler errhandler;
    MPI_Init(&argc, &argv);
    rank = check_rank();
    size = check_size();
    sent = check_allocate((size_t)size * INTS * sizeof *sent);
    received = check_allocate((size_t)size * INTS * sizeof *received);
    MPI_Type_contiguous(1, MPI_INT, &not_committed);
    MPI_Comm_create_errhandler(handler, &errhandler);
    const int before = argc > 1 ? atoi(argv[1]) : 0;
    for (int collective = 0; collective < COLLECTIVES; collective++)
        for (int wrong_rank = 0; wrong_rank < size; wrong_rank++) {
            const int root = (collective + 1) % size;
            MPI_Comm_dup(MPI_COMM_WORLD, &comm);
            MPI_Comm_set_errhandler(comm, errhandler);
            for (int i = 0; i < before; i++)
                right(collective, root, i, "right calls");
            for (int kind = 0; kind < KINDS; kind++)
                for (int is_sent = 0; is_sent < 2; is_sent++)
                    wrong(collective, kind, is_sent, root, wrong_rank);
            MPI_Comm_free(&comm);
        }
    MPI_Errhandler_free(&errhandler);
    MPI_Type_free(&not_committed);
    check_ok("collective_wrong");
    MPI_Finalize();
    return 0;
}
