/* What bcast_dlopen opens to get at odd_mpi.c. Says what came of two broadcasts. */
#include <stdio.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Bcast(void *buffer, int count, long type, int root, long comm);
int plugin_main(int *argc, char ***argv);

int plugin_main(int *argc, char ***argv) {
    int data = 0;
    MPI_Init(argc, argv);
    MPI_Bcast(&data, 1, 0, 0, 0);
    int error = MPI_Bcast(&data, 1, 0, 0, 0);
    printf("ODD data=%d error=%d\n", data, error);
    return 0;
}
