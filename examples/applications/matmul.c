/* C = A B on a grid of processes, where most of the time on a slow network goes into broadcasts: the algorithm of van de Geijn and Watts
 * (SUMMA, 1997), "broadcasting" in Wu 2005, appendix. Between nodes MPI, on a node threads (OpenMP, where compiled with it).
 *
 *        q columns            step k: who has part k of A gives it to its row,
 *      ┌────┬────┬────┐               who has part k of B gives it to its column,
 *    p │A B │    │    │               and everybody adds their product to its block of C.
 *      ├────┼────┼────┤
 *      │    │    │    │       There are lcm(p, q) parts, so that each belongs to one column of A and one row of B.
 *      └────┴────┴────┘
 *
 * Usage: matmul [N [P Q]], N rows and columns (of 1024), a multiple of lcm(P, Q) and of P and Q; P Q processes. Rank 0 prints what came out, the
 * same in every run, and the time; elements are small whole numbers, so sums are exact and some are computed again to compare. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 64 };

/* The process, its row and column of the grid, and its blocks by rows. */
struct grid {
    int rows, columns, row, column, parts;
    MPI_Comm in_row, in_column;
    size_t n, height, width;
    double *a, *b, *c;
    double broadcast_s;
};

static double a_at(size_t i, size_t j) {
    return (double)((i * 7 + j * 3) % 11) - 5;
}

static double b_at(size_t i, size_t j) {
    return (double)((i * 5 + j * 13) % 7) - 3;
}

static int greatest_divisor(int a, int b) {
    return b == 0 ? a : greatest_divisor(b, a % b);
}

/* Who finds something that all find says it once. */
static _Noreturn void fail(int rank, const char *what) {
    if (rank == 0)
        fprintf(stderr, "matmul: %s\n", what);
    MPI_Finalize();
    exit(2);
}

static double *matrix(size_t rows, size_t columns) {
    double *elements = calloc(rows * columns, sizeof *elements);
    if (elements == NULL) {
        fprintf(stderr, "matmul: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    return elements;
}

/* C += A B for A of height × depth, B of depth × width; rows of A are as long as `depth`, those of B and C as `width`. */
static void multiply(const double *a, const double *b, double *c, size_t height, size_t depth, size_t width) {
#pragma omp parallel for
    for (size_t i = 0; i < height; i++)
        for (size_t block = 0; block < width; block += BLOCK) {
            const size_t end = block + BLOCK < width ? block + BLOCK : width;
            for (size_t k = 0; k < depth; k++)
                for (size_t j = block; j < end; j++)
                    c[i * width + j] += a[i * depth + k] * b[k * width + j];
        }
}

/* From the rank that has it to all of its row or column. */
static void broadcast(struct grid *grid, double *part, size_t elements, int root, MPI_Comm comm) {
    const double began_s = MPI_Wtime();
    MPI_Bcast(part, (int)elements, MPI_DOUBLE, root, comm);
    grid->broadcast_s += MPI_Wtime() - began_s;
}

/* All steps. */
static void multiply_all(struct grid *grid) {
    const size_t depth = grid->n / (size_t)grid->parts;
    double *a = matrix(grid->height, depth), *b = matrix(depth, grid->width);
    for (int k = 0; k < grid->parts; k++) {
        const int parts_per_column = grid->parts / grid->columns, parts_per_row = grid->parts / grid->rows;
        const int from_column = k / parts_per_column, from_row = k / parts_per_row;
        const size_t at_a = (size_t)(k % parts_per_column) * depth,
                     at_b = (size_t)(k % parts_per_row) * depth;
        if (grid->column == from_column)
            for (size_t i = 0; i < grid->height; i++)
                for (size_t j = 0; j < depth; j++)
                    a[i * depth + j] = grid->a[i * grid->width + at_a + j];
        if (grid->row == from_row)
            for (size_t i = 0; i < depth * grid->width; i++)
                b[i] = grid->b[at_b * grid->width + i];
        broadcast(grid, a, grid->height * depth, from_column, grid->in_row);
        broadcast(grid, b, depth * grid->width, from_row, grid->in_column);
        multiply(a, b, grid->c, grid->height, depth, grid->width);
    }
    free(a);
    free(b);
}

static void fill(struct grid *grid) {
    const size_t top = (size_t)grid->row * grid->height, left = (size_t)grid->column * grid->width;
    for (size_t i = 0; i < grid->height; i++)
        for (size_t j = 0; j < grid->width; j++) {
            grid->a[i * grid->width + j] = a_at(top + i, left + j);
            grid->b[i * grid->width + j] = b_at(top + i, left + j);
        }
}

/* How many of some elements of this block are not what a sum by its definition gives. */
static int wrong(const struct grid *grid) {
    int count = 0;
    for (size_t i = 0; i < grid->height; i += grid->height / 4 + 1)
        for (size_t j = 0; j < grid->width; j += grid->width / 4 + 1) {
            double sum = 0;
            for (size_t k = 0; k < grid->n; k++)
                sum += a_at((size_t)grid->row * grid->height + i, k) *
                       b_at(k, (size_t)grid->column * grid->width + j);
            count += sum != grid->c[i * grid->width + j];
        }
    return count;
}

/* A number that another result hardly has. */
static uint64_t digest(const struct grid *grid) {
    uint64_t sum = 0;
    for (size_t i = 0; i < grid->height; i++)
        for (size_t j = 0; j < grid->width; j++) {
            const size_t place =
                ((size_t)grid->row * grid->height + i) * grid->n + (size_t)grid->column * grid->width + j;
            sum += (uint64_t)(int64_t)grid->c[i * grid->width + j] * (2 * place + 1);
        }
    return sum;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    struct grid grid = {.n = argc > 1 ? strtoul(argv[1], NULL, 10) : 1024};
    int rank, ranks, shape[2] = {argc > 3 ? atoi(argv[2]) : 0, argc > 3 ? atoi(argv[3]) : 0};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc <= 3)
        MPI_Dims_create(ranks, 2, shape);
    grid.rows = shape[0];
    grid.columns = shape[1];
    if (grid.rows < 1 || grid.columns < 1 || grid.rows * grid.columns != ranks)
        fail(rank, "expected P and Q with as many processes as P Q");
    grid.parts = grid.rows / greatest_divisor(grid.rows, grid.columns) * grid.columns;
    if (grid.n == 0 || grid.n % (size_t)grid.parts != 0)
        fail(rank, "expected N to be a multiple of lcm(P, Q)");
    grid.row = rank / grid.columns;
    grid.column = rank % grid.columns;
    grid.height = grid.n / (size_t)grid.rows;
    grid.width = grid.n / (size_t)grid.columns;
    MPI_Comm_split(MPI_COMM_WORLD, grid.row, grid.column, &grid.in_row);
    MPI_Comm_split(MPI_COMM_WORLD, grid.column, grid.row, &grid.in_column);
    grid.a = matrix(grid.height, grid.width);
    grid.b = matrix(grid.height, grid.width);
    grid.c = matrix(grid.height, grid.width);
    fill(&grid);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began_s = MPI_Wtime();
    multiply_all(&grid);
    MPI_Barrier(MPI_COMM_WORLD);
    const double all_s = MPI_Wtime() - began_s;
    uint64_t own = digest(&grid), sum = 0;
    int own_wrong = wrong(&grid), all_wrong = 0;
    double longest_s = 0, broadcast_s = 0;
    MPI_Reduce(&own, &sum, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&own_wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&grid.broadcast_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&grid.broadcast_s, &broadcast_s, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("RESULT N=%zu digest=%016llx wrong=%d\n", grid.n, (unsigned long long)sum, all_wrong);
        printf("TIME grid=%dx%d all=%.3f s, in broadcasts mean %.3f s, at most %.3f s\n", grid.rows,
               grid.columns, all_s, broadcast_s / ranks, longest_s);
    }
    MPI_Comm_free(&grid.in_row);
    MPI_Comm_free(&grid.in_column);
    free(grid.a);
    free(grid.b);
    free(grid.c);
    MPI_Finalize();
    return all_wrong != 0;
}
