/* An MPI library that polycast does not know, to be opened privately. ODD_HAS_NOTHING: one without MPI_Bcast. */
#include <string.h>

int MPI_Init(int *argc, char ***argv);
int MPI_Get_library_version(char *version, int *length);
int MPI_Bcast(void *buffer, int count, long type, int root, long comm);
int PMPI_Bcast(void *buffer, int count, long type, int root, long comm);

int MPI_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    return 0;
}

int MPI_Get_library_version(char *version, int *length) {
    strcpy(version, "Odd 1.0");
    *length = (int)strlen(version);
    return 0;
}

#ifndef ODD_HAS_NOTHING
int PMPI_Bcast(void *buffer, int count, long type, int root, long comm) {
    (void)count, (void)type, (void)root, (void)comm;
    *(int *)buffer = 4711;
    return 0;
}

int MPI_Bcast(void *buffer, int count, long type, int root, long comm) {
    return PMPI_Bcast(buffer, count, type, root, comm);
}
#endif
