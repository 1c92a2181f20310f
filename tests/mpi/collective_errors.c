/* What a program sees when it calls a collective wrongly. Prints one `ERR case class` line per case; the lines of two runs, with and
 * without polycast, are to be equal. All ranks make the same mistake, so that nobody is left alone. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { SCATTER, GATHER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, BARRIER, COLLECTIVES };
static const char *const names[] = {"scatter", "gather",    "allgather", "alltoall",
                                    "reduce",  "allreduce", "barrier"};

enum { COUNT = 64, MAX_RANKS = 16 };
static int sent[COUNT * MAX_RANKS], received[COUNT * MAX_RANKS];

struct arguments {
    const void *send;
    void *receive;
    int count;
    MPI_Datatype type;
    MPI_Op op;
    int root;
};

static int call(int collective, const struct arguments *with, MPI_Comm comm) {
    const void *send = with->send;
    void *receive = with->receive;
    int count = with->count, root = with->root;
    MPI_Datatype type = with->type;
    switch (collective) {
    case SCATTER:
        return MPI_Scatter(send, count, type, receive, count, type, root, comm);
    case GATHER:
        return MPI_Gather(send, count, type, receive, count, type, root, comm);
    case ALLGATHER:
        return MPI_Allgather(send, count, type, receive, count, type, comm);
    case ALLTOALL:
        return MPI_Alltoall(send, count, type, receive, count, type, comm);
    case REDUCE:
        return MPI_Reduce(send, receive, count, type, with->op, root, comm);
    case ALLREDUCE:
        return MPI_Allreduce(send, receive, count, type, with->op, comm);
    default:
        return MPI_Barrier(comm);
    }
}

/* Rank 0 prints the class of every rank. They go by messages: collectives are what is tested. */
static void report(const char *collective, const char *name, int code) {
    int class = 0;
    MPI_Error_class(code, &class);
    if (check_rank() > 0) {
        MPI_Send(&class, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
        return;
    }
    printf("ERR %s/%s %d", collective, name, class);
    for (int r = 1; r < check_size(); r++) {
        MPI_Recv(&class, 1, MPI_INT, r, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf(" %d", class);
    }
    printf("\n");
}

static int handler_calls;

static void handler(MPI_Comm *comm, int *code, ...) {
    (void)comm, (void)code;
    handler_calls++;
}

static void wrong_arguments(MPI_Comm comm) {
    MPI_Datatype uncommitted;
    int ranks;
    MPI_Comm_size(comm, &ranks);
    MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
    const struct arguments good = {sent, received, COUNT, MPI_INT, MPI_SUM, 0};
    struct {
        const char *name;
        struct arguments with;
    } cases[] = {
        {"good", good},
        {"negative-root", {sent, received, COUNT, MPI_INT, MPI_SUM, -77}},
        {"root-beyond", {sent, received, COUNT, MPI_INT, MPI_SUM, ranks}},
        {"negative-count", {sent, received, -1, MPI_INT, MPI_SUM, 0}},
        {"null-type", {sent, received, COUNT, MPI_DATATYPE_NULL, MPI_SUM, 0}},
        {"uncommitted-type", {sent, received, 4, uncommitted, MPI_SUM, 0}},
        {"null-operation", {sent, received, COUNT, MPI_INT, MPI_OP_NULL, 0}},
        {"sum-of-bytes", {sent, received, COUNT, MPI_BYTE, MPI_SUM, 0}},
        {"and-of-doubles", {sent, received, COUNT / 2, MPI_DOUBLE, MPI_BAND, 0}},
        {"place-of-ints", {sent, received, COUNT, MPI_INT, MPI_MAXLOC, 0}},
        {"one-place", {received, received, COUNT, MPI_INT, MPI_SUM, 0}},
        {"good-again", good},
    };
    for (int collective = 0; collective < COLLECTIVES; collective++)
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            int is_reduction = collective == REDUCE || collective == ALLREDUCE;
            int is_about_operations = cases[i].with.op != MPI_SUM || cases[i].with.type == MPI_BYTE;
            if (is_about_operations && !is_reduction)
                continue;
            if (cases[i].with.send == received && collective <= REDUCE)
                continue; /* the others would be left alone, or have blocks where others belong */
#ifdef OPEN_MPI
            if (cases[i].with.type == uncommitted)
                continue; /* Open MPI 4.1 itself crashes on it, but in MPI_Bcast. */
            if (cases[i].with.send == received)
                continue; /* its error ends the job */
#else
            if (is_reduction && cases[i].with.count < 0)
                continue; /* so does MPICH 4.0 */
#endif
            handler_calls = 0;
            int code = call(collective, &cases[i].with, comm);
            CHECK(handler_calls == (code != MPI_SUCCESS), "%s, %s: the handler was called %d times, code %d",
                  names[collective], cases[i].name, handler_calls, code);
            report(names[collective], cases[i].name, code);
        }
    MPI_Type_free(&uncommitted);
}

#ifndef OPEN_MPI
/* What a rank sends stands where it is to be received. Open MPI does not mind. */
static void one_place(MPI_Comm comm) {
    int counts[MAX_RANKS], places[MAX_RANKS];
    for (int rank = 0; rank < check_size(); rank++) {
        counts[rank] = COUNT - rank;
        places[rank] = rank * COUNT;
    }
    handler_calls = 0;
    int code = MPI_Allgatherv(received + places[check_rank()], counts[check_rank()], MPI_INT, received,
                              counts, places, MPI_INT, comm);
    CHECK(handler_calls == (code != MPI_SUCCESS), "the handler was called %d times, code %d", handler_calls,
          code);
    report("allgatherv", "one-place", code);
}
#endif

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Errhandler errhandler;
    MPI_Init(&argc, &argv);
    CHECK(check_size() <= MAX_RANKS, "too many ranks");
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, errhandler);
    wrong_arguments(comm);
#ifndef OPEN_MPI
    one_place(comm);
#endif
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&errhandler);
    check_ok("collective_errors");
    MPI_Finalize();
    return 0;
}
