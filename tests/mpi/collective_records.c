/* An operation of the program's on records that are handed in as bytes, so many that MPIs which cut what they combine cut between records. */
#include "check.h"

#include <stdint.h>
#include <stdlib.h>

struct record {
    int64_t count, sum, most;
};

enum { CALLS = 700, RECORDS = 1200 };

static void merge(void *from, void *into, int *bytes, MPI_Datatype *type) {
    (void)type;
    const struct record *left = from;
    struct record *right = into;
    for (int i = 0; i < *bytes / (int)sizeof *left; i++) {
        right[i].count += left[i].count;
        right[i].sum += left[i].sum;
        right[i].most = left[i].most > right[i].most ? left[i].most : right[i].most;
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    const int size = check_size(), rank = check_rank();
    struct record *mine = malloc(RECORDS * sizeof *mine), *merged = malloc(RECORDS * sizeof *merged);
    MPI_Op op;
    MPI_Op_create(merge, 1, &op);
    for (int call = 0; call < CALLS; call++) {
        for (int i = 0; i < RECORDS; i++) {
            mine[i] = (struct record){.count = 1, .sum = i + rank, .most = rank * call};
        }
        const int bytes = RECORDS * (int)sizeof *mine;
        if (call % 2) {
            MPI_Allreduce(mine, merged, bytes, MPI_BYTE, op, MPI_COMM_WORLD);
        } else {
            MPI_Reduce(mine, merged, bytes, MPI_BYTE, op, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; (call % 2 || rank == 0) && i < RECORDS; i++) {
            CHECK(merged[i].count == size && merged[i].sum == (int64_t)i * size + size * (size - 1) / 2 &&
                      merged[i].most == (size - 1) * call,
                  "record %d of call %d: %d ranks, sum %ld", i, call, (int)merged[i].count,
                  (long)merged[i].sum);
        }
    }
    MPI_Op_free(&op);
    free(mine);
    free(merged);
    check_ok("collective_records");
    MPI_Finalize();
    return 0;
}
