/* What a program sees when it calls MPI_Bcast wrongly. Prints one `ERR case class` line per case; the lines
 * of two runs, with and without polycast, are to be equal. All ranks make the same mistake, so that nobody is
 * left alone in a broadcast. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

static int error_class(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static const char *class_name(int class) {
    return class == MPI_SUCCESS        ? "MPI_SUCCESS"
           : class == MPI_ERR_ROOT     ? "MPI_ERR_ROOT"
           : class == MPI_ERR_COUNT    ? "MPI_ERR_COUNT"
           : class == MPI_ERR_TYPE     ? "MPI_ERR_TYPE"
           : class == MPI_ERR_COMM     ? "MPI_ERR_COMM"
           : class == MPI_ERR_ARG      ? "MPI_ERR_ARG"
           : class == MPI_ERR_BUFFER   ? "MPI_ERR_BUFFER"
           : class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE"
           : class == MPI_ERR_OTHER    ? "MPI_ERR_OTHER"
                                       : "another class";
}

/* Rank 0 prints the class of every rank, or of all when they agree. */
static void report(const char *name, int code) {
    int own = error_class(code), ranks = check_size(), *classes = check_allocate(sizeof(int) * (size_t)ranks);
    MPI_Gather(&own, 1, MPI_INT, classes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (check_rank() == 0) {
        int agree = 1;
        for (int r = 1; r < ranks; r++)
            agree &= classes[r] == classes[0];
        printf("ERR %s", name);
        for (int r = 0; r < (agree ? 1 : ranks); r++)
            printf(" %s(%d)", class_name(classes[r]), classes[r]);
        printf("\n");
    }
    free(classes);
}

static void wrong_arguments(MPI_Comm comm, const char *where) {
    char name[96];
    int data[16] = {0}, ranks;
    MPI_Datatype uncommitted;
    MPI_Comm_size(comm, &ranks);
    MPI_Type_vector(2, 1, 2, MPI_INT, &uncommitted);
    struct {
        const char *name;
        int count;
        MPI_Datatype type;
        int root;
    } cases[] = {
        /* Not here: a null type with count 0, on which MPICH 4.0 itself ends the job. */
        {"negative-root", 4, MPI_INT, -77},
        {"root-beyond", 4, MPI_INT, ranks},
        {"root-is-MPI_PROC_NULL", 4, MPI_INT, MPI_PROC_NULL},
        {"root-is-MPI_ROOT", 4, MPI_INT, MPI_ROOT},
        {"root-beyond-count-0", 0, MPI_INT, ranks},
        {"negative-count", -1, MPI_INT, 0},
        {"null-type", 4, MPI_DATATYPE_NULL, 0},
        {"uncommitted-type", 4, uncommitted, 0},
        {"negative-count-and-root", -1, MPI_INT, -77},
        {"null-type-and-root-beyond", 4, MPI_DATATYPE_NULL, ranks},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(name, sizeof name, "%s/%s", where, cases[i].name);
        report(name, MPI_Bcast(data, cases[i].count, cases[i].type, cases[i].root, comm));
    }
    MPI_Type_free(&uncommitted);
#ifdef OPEN_MPI /* MPICH 4.0 itself writes to that address. */
    snprintf(name, sizeof name, "%s/in-place", where);
    report(name, MPI_Bcast(MPI_IN_PLACE, 4, MPI_INT, 0, comm));
#endif
}

static int handler_calls, handler_class;
static MPI_Comm handler_comm;

static void handler(MPI_Comm *comm, int *code, ...) {
    handler_calls++;
    handler_comm = *comm;
    handler_class = error_class(*code);
}

/* The user's handler is called once, with the communicator that the user passed. */
static void user_handler(void) {
    MPI_Errhandler errhandler;
    MPI_Comm comm;
    int data[4] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &errhandler);
    MPI_Comm_set_errhandler(comm, errhandler);
    for (int attached = 0; attached < 2; attached++) {
        handler_calls = 0;
        int code = MPI_Bcast(data, 4, MPI_INT, 9999, comm);
        CHECK(handler_calls == 1, "the error handler was called %d times, expected once", handler_calls);
        CHECK(handler_comm == comm, "the error handler got another communicator than the caller's");
        report(attached ? "handler/after-a-broadcast" : "handler/before-any-broadcast", code);
        CHECK(handler_class == error_class(code), "the handler saw class %d, the caller %d", handler_class,
              error_class(code));
        handler_calls = 0;
        data[0] = check_rank() == 0 ? 4711 : 0;
        MPI_Bcast(data, 4, MPI_INT, 0, comm);
        CHECK(handler_calls == 0 && data[0] == 4711,
              "a good broadcast after an error: %d handler calls, data %d", handler_calls, data[0]);
    }
    MPI_Errhandler_free(&errhandler);
    MPI_Comm_free(&comm);
}

/* A handler that is set after the first broadcast counts as well. */
static void late_handler(void) {
    MPI_Comm comm;
    int data = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Bcast(&data, 1, MPI_INT, 0, comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    report("handler/set-late", MPI_Bcast(&data, 1, MPI_INT, 9999, comm));
    MPI_Comm_free(&comm);
}

/* The root sends more than the others expect. */
static void truncation(int root_ints, int other_ints, const char *name) {
    static int data[4096];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int is_root = check_rank() == 0;
    report(name, MPI_Bcast(data, is_root ? root_ints : other_ints, MPI_INT, 0, comm));
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int data = 1;
    wrong_arguments(MPI_COMM_WORLD, "world");
    MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_WORLD);
    wrong_arguments(MPI_COMM_WORLD, "world-in-use");
    wrong_arguments(MPI_COMM_SELF, "self");
    report("null-communicator", MPI_Bcast(&data, 1, MPI_INT, 0, MPI_COMM_NULL));
    user_handler();
    late_handler();
    if (argc > 1 &&
        strcmp(argv[1], "--truncation") == 0) /* with 2 ranks: a longer tree would be left hanging */
        truncation(8, 4, "truncation/small");
    check_ok("bcast_errors");
    MPI_Finalize();
}
