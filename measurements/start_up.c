/*
 * What a job costs before its first call, and in memory: see start_up.sh. Rank 0 prints kibibytes of its own: resident and proportional, after
 * MPI_Init and after 300 broadcasts and allreduces; the launcher's script measures the time.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

/* Kibibytes of this process: resident, and with a share only of what others map, too. */
static void memory(long *resident, long *proportional) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    *resident = *proportional = 0;
    while (file && fgets(line, sizeof line, file)) {
        sscanf(line, "Rss: %ld", resident);
        sscanf(line, "Pss: %ld", proportional);
    }
    if (file) {
        fclose(file);
    }
}

int main(int argc, char **argv) {
    enum { CALLS = 300, BYTES = 64 << 10 };
    static char buffer[BYTES];
    long before[2], after[2];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memory(&before[0], &before[1]);
    if (argc > 1 && !strcmp(argv[1], "calls")) {
        for (int call = 0; call < CALLS; call++) {
            int one = 1, sum;
            MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
            MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
    }
    memory(&after[0], &after[1]);
    if (!rank) {
        printf("%ld %ld %ld %ld\n", before[0], before[1], after[0], after[1]);
    }
    return MPI_Finalize();
}
