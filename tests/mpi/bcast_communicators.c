/* Communicators by the thousand without a leak, intercommunicators, MPI_COMM_SELF, and attributes of the user
 * that a private duplicate must not copy. Usage: bcast_communicators [CYCLES], three communicators each, 1000
 * cycles by default. */
#include "check.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { GROWTH_LIMIT_KIB = 8 * 1024, MESSAGE_INTS = 300, MAX_FILES_KEPT = 8 };

static int open_files(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder, "cannot read /proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void broadcast(MPI_Comm comm, int root, const char *what) {
    static uint64_t seed;
    int message[MESSAGE_INTS], rank;
    MPI_Comm_rank(comm, &rank);
    /* Communicators of different ranks see different numbers of broadcasts: the seed travels along. */
    memset(message, CHECK_UNWRITTEN, sizeof message);
    if (rank == root) {
        seed = seed * 31 + (uint64_t)check_rank() + 1;
        message[0] = (int)(seed & 0x7fffffff);
        check_fill(message + 2, sizeof message - 2 * sizeof(int), (uint64_t)message[0]);
    }
    MPI_Bcast(message, MESSAGE_INTS, MPI_INT, root, comm);
    check_pattern(message + 2, sizeof message - 2 * sizeof(int), (uint64_t)message[0], what);
}

static void all_roots(MPI_Comm comm, const char *what) {
    int size;
    MPI_Comm_size(comm, &size);
    for (int root = 0; root < size; root++)
        broadcast(comm, root, what);
}

/* Three communicators: a duplicate, one of a split, one of a group. */
static void cycle(int i) {
    int rank = check_rank(), ranks = check_size();
    MPI_Comm duplicate, part, grouped;
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    broadcast(duplicate, i % ranks, "duplicate");
    MPI_Comm_split(duplicate, rank % 2, -rank, &part);
    broadcast(part, 0, "split");
    if (i % 2) /* freed in either order */
        MPI_Comm_free(&duplicate);

    MPI_Group all, some;
    int excluded = i % ranks;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_excl(all, 1, &excluded, &some);
    if (rank != excluded) {
        MPI_Comm_create_group(MPI_COMM_WORLD, some, 17, &grouped);
        broadcast(grouped, (ranks - 1) / 2, "group");
        broadcast(grouped, 0, "group");
        MPI_Comm_free(&grouped);
    }
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    MPI_Comm_free(&part);
    if (i % 2 == 0)
        MPI_Comm_free(&duplicate);
}

/* Memory is compared with the state after a sixth of the cycles: caches and pools are full by then. */
static void thousands(int cycles) {
    int warm_cycles = cycles / 6;
    long warm_kib = 0;
    int warm_files = 0;
    for (int i = 0; i < cycles; i++) {
        cycle(i);
        if (i == warm_cycles) {
            warm_kib = check_resident_kib();
            warm_files = open_files();
        }
    }
    long grown_kib = check_resident_kib() - warm_kib;
    CHECK(grown_kib < GROWTH_LIMIT_KIB, "%d communicators left %ld KiB behind", 3 * (cycles - warm_cycles),
          grown_kib);
    /* A communicator may stay until its last messages have come, and its socket with it; one file for each that
     * was made would be more. */
    int files = open_files();
    CHECK(files <= warm_files + MAX_FILES_KEPT, "open files: %d after %d communicators, %d at the end",
          warm_files, 3 * warm_cycles, files);
    if (check_rank() == 0)
        printf("RESIDENT grown_kib=%ld communicators=%d\n", grown_kib, 3 * cycles);
}

/* Even ranks on one side, odd ranks on the other; each side in turn has the root. */
static void intercommunicator(void) {
    int rank = check_rank(), side = rank % 2, local_rank;
    int message[MESSAGE_INTS];
    MPI_Comm local, inter, merged;
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 5, &inter);
    MPI_Comm_rank(local, &local_rank);
    for (int sender = 0; sender < 2; sender++) {
        int is_root = side == sender && local_rank == 0;
        memset(message, CHECK_UNWRITTEN, sizeof message);
        if (is_root)
            check_fill(message, sizeof message, 77 + (uint64_t)sender);
        MPI_Bcast(message, MESSAGE_INTS, MPI_INT,
                  side != sender ? 0
                  : is_root      ? MPI_ROOT
                                 : MPI_PROC_NULL,
                  inter);
        if (is_root || side != sender)
            check_pattern(message, sizeof message, 77 + (uint64_t)sender, "intercommunicator");
        else
            check_unwritten(message, sizeof message, "intercommunicator, MPI_PROC_NULL");
    }
    MPI_Intercomm_merge(inter, side, &merged);
    all_roots(merged, "merged");
    all_roots(local, "local");
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
}

static int copies, deletions;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
    (void)comm, (void)keyval, (void)extra;
    copies++;
    *(void **)out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int count_deletion(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    deletions++;
    return MPI_SUCCESS;
}

/* The user's own duplicate calls the callbacks exactly as often as without broadcasts. */
static void user_attributes(void) {
    int keyval, value = 42, found;
    void *attribute;
    MPI_Comm comm, copy;
    MPI_Comm_create_keyval(count_copy, count_deletion, &keyval, NULL);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_attr(comm, keyval, &value);
    MPI_Comm_set_name(comm, "named by the user");
    all_roots(comm, "with an attribute");
    CHECK(copies == 0 && deletions == 0,
          "broadcasts copied the user's attribute %d times, deleted it %d times", copies, deletions);
    MPI_Comm_dup(comm, &copy);
    all_roots(copy, "copy of a communicator in use");
    CHECK(copies == 1 && deletions == 0, "one duplicate copied the attribute %d times, deleted it %d times",
          copies, deletions);
    MPI_Comm_get_attr(copy, keyval, &attribute, &found);
    CHECK(found && *(int *)attribute == 42, "the duplicate lost the user's attribute");
    MPI_Comm_free(&copy);
    CHECK(deletions == 1, "one free deleted the attribute %d times", deletions);
    all_roots(comm, "after its duplicate was freed");
    MPI_Comm_free(&comm);
    CHECK(copies == 1 && deletions == 2, "at the end: %d copies, %d deletions", copies, deletions);
    MPI_Comm_free_keyval(&keyval);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(check_size() >= 2, "needs at least 2 ranks, has %d", check_size());
    all_roots(MPI_COMM_SELF, "MPI_COMM_SELF");
    all_roots(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    user_attributes();
    intercommunicator();
    thousands(argc > 1 ? atoi(argv[1]) : 1000);
    all_roots(MPI_COMM_WORLD, "MPI_COMM_WORLD again");
    check_ok("bcast_communicators");
    MPI_Finalize();
}
