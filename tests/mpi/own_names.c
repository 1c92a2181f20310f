/* A program that exports functions of its own (own_names.S) by all names of libc's functions that polycast looks up. Whoever calls them gets libc's, for the
 * MPI below calls many of them; but polycast's objects must not come here. */
#define _GNU_SOURCE
#include "check.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

struct place {
    void *function;
    char name[];
};

typedef int dladdr_function(const void *address, Dl_info *info);
typedef ssize_t write_function(int file, const void *data, size_t bytes);
typedef void exit_function(int status);

static void *of_libc(const char *name) {
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    return libc ? dlsym(libc, name) : NULL;
}

/* strstr is one of the names. */
static int is_in(const char *text, const char *part) {
    for (; *text; text++) {
        size_t same = 0;
        while (part[same] && text[same] == part[same]) {
            same++;
        }
        if (!part[same]) {
            return 1;
        }
    }
    return 0;
}

static int info_is_of(Dl_info *info, dladdr_function *find, const void *caller, const char *part) {
    return find(caller, info) && info->dli_fname && is_in(info->dli_fname, part);
}

void *own_name(struct place *place, const void *caller);

/* Called before anything else is ready, and by what this calls: only what is not exported may be called by its name. */
void *own_name(struct place *place, const void *caller) {
    static dladdr_function *find;
    Dl_info info;
    find = find ? find : (dladdr_function *)of_libc("dladdr");
    place->function = place->function ? place->function : of_libc(place->name);
    /* Open MPI's progress, which its component calls, ends in a jump to sched_yield: that returns to the component. */
    const int is_of_progress =
        is_in(place->name, "sched_yield") && info_is_of(&info, find, caller, "mca_coll_polycast.so");
    if (!is_of_progress && info_is_of(&info, find, caller, "polycast") && is_in(info.dli_fname, ".so")) {
        write_function *say = (write_function *)of_libc("write");
        static const char what[] = ": polycast has called the program's function of this name\n";
        say(2, place->name, strlen(place->name));
        say(2, what, sizeof what - 1);
        ((exit_function *)of_libc("_exit"))(97);
    }
    return place->function;
}

/* Whether the test can fail: an object of polycast's by its name, which calls a function of this list as any object would. */
static void call_from_an_object(const char *path) {
    void *object = dlopen(path, RTLD_NOW);
    int (*call)(void) = object ? (int (*)(void))dlsym(object, "call") : NULL;
    CHECK(call, "%s: cannot be opened", path);
    call();
}

int main(int argc, char **argv) {
    enum { CALLS = 600, MOST_BYTES = 1 << 18 };
    MPI_Init(&argc, &argv);
    if (argc > 1) {
        call_from_an_object(argv[1]);
    }
    unsigned char *message = check_allocate(MOST_BYTES);
    for (int call = 0; call < CALLS; call++) {
        const size_t bytes = call % 50 == 0 ? MOST_BYTES : (size_t)1 << call % 15;
        check_broadcast(MPI_COMM_WORLD, message, bytes, call % check_size(), (uint64_t)call, "own names");
        int sum = 0, rank = check_rank();
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        CHECK(sum == check_size() * (check_size() - 1) / 2, "sum %d is %d", call, sum);
    }
    free(message);
    check_ok("own_names");
    return MPI_Finalize();
}
