/* One-sided calls to a rank that waits in a collective which polycast serves: a counter that rank 0 has, from which the others draw numbers
 * when rank 0 waits for them already. Each number is drawn once. */
#include "check.h"

#include <stdlib.h>

enum { CALLS = 400, DRAWS = 300, INTS = 1000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int size = check_size(), rank = check_rank();
    static int mine[INTS], all[INTS];
    long *counter, drawn = -1, sum = 0, of_all = 0;
    const long one = 1;
    MPI_Win window;
    MPI_Win_allocate(sizeof *counter, sizeof *counter, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &window);
    *counter = 0;
    for (int call = 0; call < CALLS; call++) {
        mine[0] = call;
        MPI_Allreduce(mine, all, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(all[0] == call * size, "sum %d: %d", call, all[0]);
    }
    MPI_Win_lock_all(0, window);
    for (int draw = 0; rank > 0 && draw < DRAWS; draw++) {
        const long before = drawn;
        MPI_Fetch_and_op(&one, &drawn, MPI_LONG, 0, 0, MPI_SUM, window);
        MPI_Win_flush(0, window);
        CHECK(drawn > before, "%ld after %ld", drawn, before);
        sum += drawn;
    }
    MPI_Allreduce(mine, all, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Allreduce(&sum, &of_all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    const long draws = (long)DRAWS * (size - 1);
    CHECK(of_all == draws * (draws - 1) / 2, "the numbers are %ld in all", of_all);
    MPI_Win_free(&window);
    check_ok("collective_windows");
    MPI_Finalize();
    return 0;
}
