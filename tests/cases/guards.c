/* Messages in memory that allows no byte more than MPI promises: they end where a page ends that is followed by a forbidden one, or may only be read;
 * numbers at odd addresses; a file's pages, and pages that nobody has touched yet. A read or write beyond a message is a SIGSEGV here. */
#define _GNU_SOURCE
#include "case.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, UNTOUCHED = 2 << 20, FILE_BYTES = 1 << 20, LONG_CALLS = 10 };
static const size_t sizes[] = {1,   2,   3,    5,    7,    8,    9,    15,    31,    33,     63,     65,
                               511, 513, 1000, 4095, 4096, 4097, 8191, 12289, 65537, 262147, 1048579};
enum { SIZES = sizeof sizes / sizeof *sizes };
static int calls, rank, ranks;

static unsigned char *map(size_t bytes, int flags) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    CHECK(memory != MAP_FAILED, "no %zu bytes of memory", bytes);
    return memory;
}

static size_t whole_pages(size_t bytes) {
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* So many bytes behind which nothing may be read. */
static unsigned char *guarded(size_t bytes) {
    const size_t room = whole_pages(bytes);
    unsigned char *memory = map(room + PAGE, 0);
    mprotect(memory + room, PAGE, PROT_NONE);
    return memory + room - bytes;
}

static void free_guarded(unsigned char *memory, size_t bytes) {
    const size_t room = whole_pages(bytes);
    munmap(memory + bytes - room, room + PAGE);
}

/* A pattern that may only be read, up to a forbidden page. */
static unsigned char *constant(size_t bytes) {
    unsigned char *memory = guarded(bytes);
    check_fill(memory, bytes, bytes);
    mprotect(memory + bytes - whole_pages(bytes), whole_pages(bytes), PROT_READ);
    return memory;
}

/* MPICH 4.0 writes to the message of a root on its node that is not rank 0 what it has read there. */
static int may_be_constant(int root) {
#ifdef OPEN_MPI
    (void)root;
    return 1;
#else
    return root == 0;
#endif
}

static void broadcast(size_t bytes, int root, const unsigned char *from, unsigned char *to) {
    memset(to, CHECK_UNWRITTEN, bytes);
    const int is_constant = rank == root && may_be_constant(root);
    if (rank == root)
        memcpy(to, from, bytes);
    MPI_Bcast(is_constant ? (void *)from : to, (int)bytes, MPI_BYTE, root, check_comm);
    check_pattern(to, bytes, bytes, "broadcast");
}

static void moves(size_t bytes, int root, const unsigned char *from, unsigned char *to, unsigned char *all,
                  unsigned char *others) {
    const int count = (int)bytes;
    broadcast(bytes, root, from, to);
    MPI_Allgather(from, count, MPI_BYTE, all, count, MPI_BYTE, check_comm);
    check_pattern(all + (size_t)(ranks - 1) * bytes, bytes, bytes, "allgather");
    MPI_Gather(from, count, MPI_BYTE, rank == root ? all : NULL, count, MPI_BYTE, root, check_comm);
    MPI_Alltoall(all, count, MPI_BYTE, others, count, MPI_BYTE, check_comm);
    check_pattern(others + (size_t)(ranks - 1) * bytes, bytes, bytes, "alltoall");
    MPI_Scatter(all, count, MPI_BYTE, to, count, MPI_BYTE, root, check_comm);
    check_pattern(to, bytes, bytes, "scatter");
    MPI_Reduce(from, to, count, MPI_BYTE, MPI_BOR, root, check_comm);
    MPI_Allreduce(from, to, count, MPI_BYTE, MPI_BAND, check_comm);
    check_pattern(to, bytes, bytes, "allreduce");
}

/* Doubles that end a byte before the page does. */
static void odd_addresses(size_t bytes) {
    const int count = (int)(bytes / sizeof(double));
    const size_t room = (size_t)count * sizeof(double) + 1;
    unsigned char *from = guarded(room), *to = guarded(room);
    for (int i = 0; i < count; i++)
        memcpy(from + (size_t)i * sizeof(double), &(double){rank + i}, sizeof(double));
    MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, check_comm);
    for (int i = 0; i < count; i++) {
        double found;
        memcpy(&found, to + (size_t)i * sizeof(double), sizeof found);
        CHECK(found == ranks * (ranks - 1) / 2 + (double)ranks * i, "odd addresses, %d of %d", i, count);
    }
    free_guarded(from, room);
    free_guarded(to, room);
}

static void of_size(size_t bytes, int root) {
    const size_t of_all = bytes * (size_t)ranks;
    unsigned char *from = constant(bytes), *to = guarded(bytes);
    unsigned char *all = guarded(of_all), *others = guarded(of_all);
    for (int call = 0; call < (bytes > 60000 && calls > LONG_CALLS ? LONG_CALLS : calls); call++) {
        moves(bytes, root, from, to, all, others);
        if (bytes >= sizeof(double))
            odd_addresses(bytes);
    }
    free_guarded(from, bytes);
    free_guarded(to, bytes);
    free_guarded(all, of_all);
    free_guarded(others, of_all);
}

static void a_file(void) {
    FILE *file = tmpfile();
    CHECK(file && ftruncate(fileno(file), FILE_BYTES) == 0, "no file of %d bytes", FILE_BYTES);
    void *pages = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    CHECK(pages != MAP_FAILED, "the file cannot be mapped");
    for (int call = 0; call < LONG_CALLS; call++)
        check_broadcast(check_comm, pages, FILE_BYTES, call % ranks, (uint64_t)call, "a file's pages");
    munmap(pages, FILE_BYTES);
    fclose(file);
}

/* The root's are the kernel's page of zeros, those of the others are to become some, huge ones where there are. */
static void untouched_pages(void) {
    for (int call = 0; call < LONG_CALLS; call++) {
        unsigned char *zeros = map(UNTOUCHED, 0);
        void *pages =
            mmap(NULL, UNTOUCHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
        unsigned char *to = pages == MAP_FAILED ? map(UNTOUCHED, 0) : pages;
        MPI_Bcast(rank == 0 ? zeros : to, UNTOUCHED, MPI_BYTE, 0, check_comm);
        for (int i = 0; i < UNTOUCHED; i += PAGE / 2)
            CHECK(to[i] == 0, "untouched pages: byte %d is %d", i, to[i]);
        munmap(zeros, UNTOUCHED);
        munmap(to, UNTOUCHED);
    }
}

static void body(void) {
    for (int i = 0; i < SIZES; i++)
        of_size(sizes[i], i % ranks);
    a_file();
    untouched_pages();
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    calls = case_calls(argc, argv);
    rank = check_rank();
    ranks = check_size();
    check_each_setting(body);
    check_ok("guards");
    MPI_Finalize();
    return 0;
}
