/* Ranks that come seconds late: the root, its successor, one in the middle. Who need not wait for them does not, and they
 * get what the others have had for long, also of the next broadcast, which has begun without them.
 *
 * Usage: bcast_late [SECONDS [BYTES [push|pull]]]. With a form, the late rank does not call before all have told it that they
 * have left the broadcast who, in this form, owe it nothing: if one of them waits for it, the job never ends. */
#include "check.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned char *message;

static void broadcast(int bytes, int root, uint64_t seed, const char *what) {
    memset(message, CHECK_UNWRITTEN, (size_t)bytes);
    if (check_rank() == root)
        check_fill(message, (size_t)bytes, seed);
    MPI_Bcast(message, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    check_pattern(message, (size_t)bytes, seed, what);
}

/* Everybody waits for the root; who pushes owes nothing, who is asked for what is missing waits for its successor. */
static int waits_for(int rank, int late, const char *form) {
    int is_asked = strcmp(form, "pull") == 0 && (rank + 1) % check_size() == late;
    return late == 0 || is_asked;
}

static void with_late_rank(int late, double seconds, int bytes, const char *form) {
    enum { LEFT = 7 };
    int rank = check_rank(), ranks = check_size();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int other = 0; form && rank == late && other < ranks; other++)
        if (other != late && !waits_for(other, late, form))
            MPI_Recv(NULL, 0, MPI_BYTE, other, LEFT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == late)
        usleep((useconds_t)(seconds * 1e6));
    broadcast(bytes, 0, 100 + (uint64_t)late, "with a late rank");
    if (form && rank != late && !waits_for(rank, late, form))
        MPI_Send(NULL, 0, MPI_BYTE, late, LEFT, MPI_COMM_WORLD);
    broadcast(bytes / 2, 1, 200 + (uint64_t)late, "after the one with a late rank");
    broadcast(3, ranks - 1, 300 + (uint64_t)late, "the second after the one with a late rank");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    double seconds = argc > 1 ? atof(argv[1]) : 2;
    int bytes = argc > 2 ? atoi(argv[2]) : 2000;
    message = check_allocate((size_t)bytes);
    for (int root = 0; root < check_size(); root++)
        broadcast(bytes, root, (uint64_t)root, "before anybody is late");
    for (int late = 0; late < check_size() - 1; late++)
        with_late_rank(late, seconds, bytes, argc > 3 ? argv[3] : NULL);
    free(message);
    check_ok("bcast_late");
    MPI_Finalize();
}
