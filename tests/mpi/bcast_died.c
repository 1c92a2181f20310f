/* Multicast that dies in mid-job, and comes back: broadcasts in parts, between which whoever has started the job changes the network.
 *
 * Usage: bcast_died BYTES FOLDER CALLS... A part has so many calls from rank 0. Before each part but the first rank 0 makes the file
 * FOLDER/reached.N and waits until FOLDER/go.N is there. At the end it prints `PART N calls=N first=S median=S` for each: seconds in
 * MPI_Bcast on the slowest rank, for the first ten together, and for the later ones. */
#include "check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST = 10, MAX_PARTS = 8, MAX_CALLS = 10000 };

static unsigned char *message;
static double seconds[MAX_CALLS], slowest[MAX_CALLS];

static void wait_for_network(const char *folder, int part) {
    char path[4096];
    if (check_rank() == 0) {
        snprintf(path, sizeof path, "%s/reached.%d", folder, part);
        int file = open(path, O_CREAT | O_WRONLY, 0600);
        CHECK(file >= 0, "cannot make %s", path);
        close(file);
        snprintf(path, sizeof path, "%s/go.%d", folder, part);
        while (access(path, F_OK) != 0)
            usleep(5000);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static int by_size(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static double part(int bytes, int part, int calls, double *first) {
    for (int call = 0; call < calls; call++) {
        uint64_t seed = (uint64_t)part * MAX_CALLS + (uint64_t)call;
        memset(message, CHECK_UNWRITTEN, (size_t)bytes);
        if (check_rank() == 0)
            check_fill(message, (size_t)bytes, seed);
        double began = MPI_Wtime();
        MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        seconds[call] = MPI_Wtime() - began;
        check_pattern(message, (size_t)bytes, seed, "while multicast comes and goes");
    }
    MPI_Reduce(seconds, slowest, calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    int ahead = calls < FIRST ? calls : FIRST;
    *first = 0;
    for (int call = 0; call < ahead; call++)
        *first += slowest[call];
    qsort(slowest + ahead, (size_t)(calls - ahead), sizeof *slowest, by_size);
    return calls > ahead ? slowest[ahead + (calls - ahead) / 2] : 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc > 3 && argc - 3 <= MAX_PARTS, "expected BYTES FOLDER CALLS...");
    int bytes = atoi(argv[1]);
    double first[MAX_PARTS], median[MAX_PARTS];
    message = check_allocate((size_t)bytes);
    for (int at = 3; at < argc; at++) {
        int calls = atoi(argv[at]);
        CHECK(calls > 0 && calls <= MAX_CALLS, "expected 1 to %d calls, found %s", MAX_CALLS, argv[at]);
        if (at > 3)
            wait_for_network(argv[2], at - 3);
        median[at - 3] = part(bytes, at - 3, calls, &first[at - 3]);
    }
    for (int at = 0; check_rank() == 0 && at < argc - 3; at++)
        printf("PART %d calls=%s first=%f median=%f\n", at, argv[at + 3], first[at], median[at]);
    free(message);
    check_ok("bcast_died");
    MPI_Finalize();
}
