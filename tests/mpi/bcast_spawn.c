/* Communicators that reach beyond MPI_COMM_WORLD: merged with spawned processes which lack what is preloaded here, and with
 * the same ones through a port. Started with `child` by itself. */
#include "check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INTS = 50000, CHILDREN = 2 };

/* From the first and from the last rank, which are on both sides; every second int before, as a datatype. */
static void broadcast(MPI_Comm inter, int is_child, const char *name) {
    static int data[INTS];
    MPI_Comm merged;
    int rank, size;
    MPI_Intercomm_merge(inter, is_child, &merged);
    MPI_Comm_rank(merged, &rank);
    MPI_Comm_size(merged, &size);
    MPI_Datatype every_second;
    MPI_Type_vector(INTS / 2, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    for (int root = 0; root < size; root += size - 1) {
        for (int i = 0; i < INTS; i++)
            data[i] = rank == root ? -i : 1;
        MPI_Bcast(data, 1, every_second, root, merged);
        for (int i = 0; i < INTS; i += 2)
            CHECK(data[i] == -i, "%s: int %d of a datatype is %d", name, i, data[i]);
        for (int i = 0; i < INTS; i++)
            data[i] = rank == root ? i + root : -1;
        MPI_Bcast(data, INTS, MPI_INT, root, merged);
        for (int i = 0; i < INTS; i++)
            CHECK(data[i] == i + root, "%s: int %d is %d", name, i, data[i]);
    }
    MPI_Type_free(&every_second);
    MPI_Comm_free(&merged);
}

/* The parents offer a port, whose name the children get by the communicator between them. */
static void through_a_port(MPI_Comm inter, int is_child) {
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm connected;
    if (!is_child && check_rank() == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    int root = is_child ? 0 : check_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, root, inter);
    if (is_child)
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &connected);
    else
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &connected);
    broadcast(connected, is_child, "merged with those that connected");
    MPI_Comm_disconnect(&connected);
    if (!is_child && check_rank() == 0)
        MPI_Close_port(port);
}

int main(int argc, char **argv) {
    MPI_Comm inter;
    int is_child = argc > 1 && strcmp(argv[1], "child") == 0;
    MPI_Init(&argc, &argv);
    if (is_child) {
        CHECK(!getenv("LD_PRELOAD"), "a child has LD_PRELOAD=%s", getenv("LD_PRELOAD"));
        MPI_Comm_get_parent(&inter);
    } else {
        char self[PATH_MAX] = {0};
        CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot read /proc/self/exe");
        char *arguments[] = {"-u", "LD_PRELOAD", self, "child", NULL};
        MPI_Comm_spawn("env", arguments, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
    }
    broadcast(inter, is_child, "merged with spawned ones");
    through_a_port(inter, is_child);
    MPI_Comm_disconnect(&inter);
    if (!is_child)
        check_ok("bcast_spawn");
    MPI_Finalize();
}
