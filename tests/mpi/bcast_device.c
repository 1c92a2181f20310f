/* Messages in the memory of a GPU, which only the vendor's library can reach: on every second rank, at the root and elsewhere.
 * The library, which the argument names, is a stand-in (fake_cuda.c, fake_hip.c), so this runs only where somebody stages such
 * messages for the MPI. */
#include "check.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 300000 };

static void *(*allocate)(size_t bytes);
static void (*copy)(void *to, const void *from, size_t bytes);

/* Of the library `file` beside this program. */
static void *library_function(const char *file, const char *name) {
    static void *library;
    char self[PATH_MAX] = {0}, path[2 * PATH_MAX];
    if (!library) {
        CHECK(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "cannot read /proc/self/exe");
        snprintf(path, sizeof path, "%s/%s", dirname(self), file);
        library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    void *function = library ? dlsym(library, name) : NULL;
    CHECK(function, "%s", dlerror());
    return function;
}

static void broadcast(unsigned char *device, size_t bytes, int root, uint64_t seed) {
    static unsigned char host[BYTES];
    int is_device = check_rank() % 2;
    memset(host, CHECK_UNWRITTEN, sizeof host);
    if (check_rank() == root)
        check_fill(host, bytes, seed);
    if (is_device)
        copy(device, host, bytes);
    MPI_Bcast(is_device ? device : host, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
    if (is_device)
        copy(host, device, bytes);
    check_pattern(host, bytes, seed, is_device ? "on the device" : "on the host");
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    CHECK(argc == 2, "expected the name of a library");
    /* The library comes when the process has broadcast already. */
    int first = 1;
    MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD);
    *(void **)&allocate = library_function(argv[1], "fake_allocate");
    *(void **)&copy = library_function(argv[1], "fake_copy");
    unsigned char *device = allocate(BYTES);
    for (int root = 0; root < check_size(); root++)
        for (size_t bytes = 1; bytes <= BYTES; bytes = 17 * bytes + 1)
            broadcast(device, bytes, root, (uint64_t)root * BYTES + bytes);
    check_ok("bcast_device");
    MPI_Finalize();
}
