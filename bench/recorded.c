#include "recorded.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank that is an hour late is a mistake in the file. */
static const int64_t LONGEST_NS = INT64_C(3600) * 1000 * 1000 * 1000;

/* Skips space, and lines that begin with #. */
static void skip(FILE *file) {
    int c = fgetc(file);
    while (isspace(c) || c == '#') {
        const bool is_remark = c == '#';
        while (is_remark && c != '\n' && c != EOF)
            c = fgetc(file);
        c = fgetc(file);
    }
    if (c != EOF)
        ungetc(c, file);
}

/* The next number of the file; false at its end and at what is none. */
static bool next_number(FILE *file, int64_t *number) {
    skip(file);
    return fscanf(file, "%" SCNd64, number) == 1;
}

/* Returns NULL, or what was expected. */
static const char *read_rows(FILE *file, struct recorded *recorded, int ranks) {
    int64_t number = 0;
    int version = 0;
    if (fscanf(file, "polycast-arrivals %d", &version) != 1 || version != 1)
        return "polycast-arrivals 1 in its first line";
    skip(file);
    if (fscanf(file, "ranks %d", &recorded->ranks) != 1 || recorded->ranks != ranks)
        return "as many ranks as this job has";
    const size_t width = (size_t)ranks + 1;
    recorded->numbers = malloc(MAX_RECORDED_ROWS * width * sizeof *recorded->numbers);
    if (!recorded->numbers)
        return "memory for its rows";
    while (recorded->rows < MAX_RECORDED_ROWS && next_number(file, &number)) {
        int64_t *row = recorded->numbers + (size_t)recorded->rows * width;
        if (number < 0 || number >= ranks)
            return "a rank of this job as the root";
        row[0] = number;
        for (int rank = 0; rank < ranks; rank++) {
            if (!next_number(file, &row[1 + rank]) || row[1 + rank] < 0 || row[1 + rank] > LONGEST_NS)
                return "nanoseconds for each rank in each row";
        }
        recorded->rows++;
    }
    return recorded->rows > 0 ? NULL : "a row at least";
}

bool recorded_open(struct recorded *recorded, const char *name, MPI_Comm comm, char *error, int error_size) {
    int rank, ranks;
    *recorded = (struct recorded){0};
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    if (rank == 0) {
        FILE *file = fopen(name, "r");
        const char *expected = file ? read_rows(file, recorded, ranks) : "a file that rank 0 can read";
        if (file)
            fclose(file);
        if (expected) {
            snprintf(error, (size_t)error_size, "arrivals %s: expected %s", name, expected);
            recorded->rows = 0;
        }
    }
    recorded->ranks = ranks;
    MPI_Bcast(&recorded->rows, 1, MPI_INT, 0, comm);
    const size_t numbers = (size_t)recorded->rows * ((size_t)ranks + 1);
    if (rank != 0)
        recorded->numbers = malloc((numbers + 1) * sizeof *recorded->numbers);
    int has_memory = recorded->numbers || recorded->rows == 0, all_have = 0;
    MPI_Allreduce(&has_memory, &all_have, 1, MPI_INT, MPI_MIN, comm);
    if (recorded->rows > 0 && all_have) {
        MPI_Bcast(recorded->numbers, (int)numbers, MPI_INT64_T, 0, comm);
        return true;
    }
    if (recorded->rows > 0)
        snprintf(error, (size_t)error_size, "arrivals %s: no memory for them on every rank", name);
    recorded_close(recorded);
    return false;
}

void recorded_close(struct recorded *recorded) {
    free(recorded->numbers);
    recorded->numbers = NULL;
}

static const int64_t *row_of(const struct recorded *recorded, int64_t cycle) {
    return recorded->numbers + (size_t)(cycle % recorded->rows) * ((size_t)recorded->ranks + 1);
}

int64_t recorded_longest_ns(const struct recorded *recorded) {
    int64_t longest_ns = 0;
    for (int row = 0; row < recorded->rows; row++) {
        for (int rank = 0; rank < recorded->ranks; rank++) {
            const int64_t delay_ns = row_of(recorded, row)[1 + rank];
            longest_ns = delay_ns > longest_ns ? delay_ns : longest_ns;
        }
    }
    return longest_ns;
}

int64_t recorded_delay_ns(const struct recorded *recorded, int64_t cycle, int rank, int root) {
    const int64_t *row = row_of(recorded, cycle);
    const int turned = (int)((rank - root + row[0]) % recorded->ranks + recorded->ranks) % recorded->ranks;
    return row[1 + turned];
}
