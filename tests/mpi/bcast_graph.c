/* MPI_Dist_graph_create with reordering, over and over, and the first broadcasts on what it makes. Open MPI's treematch works on
 * the hosts' leaders alone while other ranks go on; a library that makes a communicator at a first broadcast hung in it.
 *
 * Usage: bcast_graph [GRAPHS], 100 by default */
#include "check.h"

#include <stdlib.h>
#include <string.h>

enum { BYTES = 9000 };

int main(int argc, char **argv) {
    unsigned char message[BYTES];
    MPI_Init(&argc, &argv);
    int count = argc > 1 ? atoi(argv[1]) : 100, rank = check_rank(), ranks = check_size();
    for (int i = 0; i < count; i++) {
        /* A ring whose heavy edges join ranks that are far apart, so that there is something to reorder. */
        int targets[2] = {(rank + 1) % ranks, (rank + ranks / 2) % ranks};
        int weights[2] = {1, 100 + i}, degree = 2, graph_rank;
        MPI_Comm graph;
        MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, targets, weights, MPI_INFO_NULL, 1, &graph);
        MPI_Comm_rank(graph, &graph_rank);
        for (int k = 0; k < 3; k++) {
            int root = (i + k) % ranks;
            memset(message, CHECK_UNWRITTEN, sizeof message);
            if (graph_rank == root)
                check_fill(message, sizeof message, (uint64_t)(3 * i + k));
            MPI_Bcast(message, BYTES, MPI_BYTE, root, graph);
            check_pattern(message, sizeof message, (uint64_t)(3 * i + k), "on a graph");
        }
        MPI_Comm_free(&graph);
    }
    check_ok("bcast_graph");
    MPI_Finalize();
}
