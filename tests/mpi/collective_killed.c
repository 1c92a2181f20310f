/*
 * The rank that is named ends in a way that is named, after some broadcasts of all ranks, and while the others wait for it: by an error of MPI
 * that is fatal, without MPI_Finalize, by a signal; or nobody does. With a folder, each rank leaves its process's number there before.
 */
#include "check.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave_number(const char *folder) {
    char beside[4096], name[4096];
    snprintf(beside, sizeof beside, "%s/.rank-%d", folder, check_rank());
    snprintf(name, sizeof name, "%s/rank-%d", folder, check_rank());
    FILE *file = fopen(beside, "w");
    CHECK(file && fprintf(file, "%d\n", (int)getpid()) > 0 && !fclose(file) && !rename(beside, name),
          "cannot write %s", name);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 2, "expected the number of a rank, and error, exit, signal or wait");
    static char message[4096];
    for (int call = 0; call < 20; call++)
        check_broadcast(MPI_COMM_WORLD, message, sizeof message, 0, (uint64_t)call, "before the end");
    PMPI_Barrier(MPI_COMM_WORLD);
    if (argc > 3)
        leave_number(argv[3]);
    if (strcmp(argv[2], "wait") == 0)
        for (;;)
            pause();
    if (check_rank() == atoi(argv[1])) {
        if (strcmp(argv[2], "error") == 0)
            MPI_Send(message, 1, MPI_CHAR, check_size() + 1000, 0, MPI_COMM_WORLD);
        if (strcmp(argv[2], "exit") == 0)
            exit(3);
        signal(SIGABRT, SIG_DFL);
        abort();
    }
    PMPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
}
