/* Broadcasts after the end has begun: in a delete callback of MPI_COMM_SELF, which MPI_Finalize calls first of all, and in a
 * session that outlives MPI_COMM_WORLD. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { INTS = 5000 };

static int broadcast(MPI_Comm comm, int seed) {
    static int data[INTS];
    int rank;
    MPI_Comm_rank(comm, &rank);
    for (int i = 0; i < INTS; i++)
        data[i] = rank == 1 ? seed * i : -1;
    MPI_Bcast(data, INTS, MPI_INT, 1, comm);
    for (int i = 0; i < INTS; i++) {
        if (data[i] != seed * i) {
            fprintf(stderr, "FAIL rank %d: element %d is %d, expected %d\n", rank, i, data[i], seed * i);
            exit(1);
        }
    }
    return rank;
}

static MPI_Comm first_used_at_the_end;

static int at_finalize(MPI_Comm comm, int keyval, void *attribute, void *extra) {
    (void)comm, (void)keyval, (void)attribute, (void)extra;
    broadcast(MPI_COMM_WORLD, 5);
    broadcast(first_used_at_the_end, 7);
    return MPI_SUCCESS;
}

#if MPI_VERSION >= 4
static MPI_Session session;
static MPI_Comm of_session;

static void begin_session(void) {
    MPI_Group group;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "polycast-test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &of_session);
    MPI_Group_free(&group);
}

static void end_session(void) {
    broadcast(of_session, 11);
    MPI_Comm_free(&of_session);
    MPI_Session_finalize(&session);
}
#else
static void begin_session(void) {
}

static void end_session(void) {
}
#endif

/* With an argument there is no broadcast before the end. */
int main(int argc, char **argv) {
    int keyval;
    MPI_Init(&argc, &argv);
    begin_session();
    MPI_Comm_dup(MPI_COMM_WORLD, &first_used_at_the_end);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_finalize, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    int rank = argc > 1 ? 0 : broadcast(MPI_COMM_WORLD, 3);
    if (argc > 1)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Finalize();
    end_session();
    if (rank == 0)
        printf("OK bcast_finalize\n");
}
