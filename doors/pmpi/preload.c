/*
 * libpolycast-mpi.so: the one object that is preloaded, for every MPI.
 *
 * It knows no MPI header and depends on no MPI library, so that it can be loaded into any process: a shell, a
 * Python that opens libmpi much later, a program of any MPI. At the first broadcast it looks which libmpi the
 * process has, opens the door that was built for this family, and from then on a broadcast costs one indirect
 * call here.
 *
 * Handles (MPI_Comm, MPI_Datatype) are an int in one family and a pointer in another. On the platforms we
 * support both travel in one integer register, and a callee that expects an int ignores the upper half, so
 * `handle` passes either on untouched.
 *
 * The real function is the next one in line (RTLD_NEXT), so that tools below us are not bypassed; where
 * libmpi was opened privately (RTLD_LOCAL, as Python does) there is no next one, and it is looked up in
 * libmpi itself.
 */
#define _GNU_SOURCE
#define POLYCAST_PRELOAD
#include "preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#define EXPORT __attribute__((visibility("default")))

static const struct {
    const char *soname_prefix;
    const char *family;
} families[] = {
    {"libmpi.so.40", "openmpi"},
    {"libmpi.so.12", "mpich"},
    {"libmpich.so.12", "mpich"},
    {"libmpi_abi.so.", "abi"},
};

struct found_mpi {
    char path[4096];
    const char *family; /* NULL: none of ours */
};

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data) {
    struct found_mpi *found = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *name = slash ? slash + 1 : info->dlpi_name;
    (void)size;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (strncmp(name, families[i].soname_prefix, strlen(families[i].soname_prefix)) == 0 &&
            strlen(info->dlpi_name) < sizeof found->path) {
            strcpy(found->path, info->dlpi_name);
            found->family = families[i].family;
            return 1;
        }
    }
    return 0;
}

static void warn(const char *what, const char *detail) {
    fprintf(stderr, "polycast: %s: %s; the stock MPI serves every call\n", what,
            detail ? detail : "unknown error");
}

/* A variable that says "no". The same words as polycast_is_enabled in the runtime. */
static int is_switched_off(void) {
    const char *value = getenv("POLYCAST");
    return value && (!strcasecmp(value, "off") || !strcmp(value, "0") || !strcasecmp(value, "no") ||
                     !strcasecmp(value, "false"));
}

static void *next_or_in(void *libmpi, const char *name) {
    void *next = dlsym(RTLD_NEXT, name);
    return next || !libmpi ? next : dlsym(libmpi, name);
}

/* Opens doors/polycast-door-FAMILY.so beside this object. */
static void *open_door(const char *family) {
    Dl_info self;
    char path[4096];
    if (!dladdr((void *)&open_door, &self) || !self.dli_fname) {
        return NULL;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    int folder_length = slash ? (int)(slash - self.dli_fname) : 1;
    const char *folder = slash ? self.dli_fname : ".";
    int length = snprintf(path, sizeof path, "%.*s/doors/polycast-door-%s.so", folder_length, folder, family);
    return length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static bcast_function resolve_then_bcast;
static bcast_c_function resolve_then_bcast_c;

/* Where a call goes: first to the resolver, then to the door, or to the real function if there is no door. */
static bcast_function *serve_bcast = resolve_then_bcast;
static bcast_c_function *serve_bcast_c = resolve_then_bcast_c;
static configure_function *serve_configure;
static choice_function *serve_choice;

/* For a program that calls MPI_Bcast_c although its library has none. */
static int bcast_c_without_library(void *buffer, int64_t count, handle type, int root, handle comm) {
    const int mpi_err_count = 2; /* the same in every family */
    if (count < INT_MIN || count > INT_MAX) {
        return mpi_err_count;
    }
    return PMPI_Bcast(buffer, (int)count, type, root, comm);
}

static void resolve(void) {
    struct found_mpi found = {.family = NULL};
    dl_iterate_phdr(look_at_object, &found);
    /* The door's references to libmpi are resolved in the global scope; libmpi may have been opened
     * privately. */
    void *libmpi = found.family ? dlopen(found.path, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) : NULL;
    struct stock stock = {
        .bcast = (bcast_function *)next_or_in(libmpi, "PMPI_Bcast"),
        .bcast_c = (bcast_c_function *)next_or_in(libmpi, "PMPI_Bcast_c"),
    };
    if (!stock.bcast_c) {
        stock.bcast_c = bcast_c_without_library;
    }
    struct served served = {
        .bcast = stock.bcast, .bcast_c = stock.bcast_c, .configure = NULL, .choice = NULL};
    /* In a setuid program nothing from outside is opened. */
    if (!is_switched_off() && getauxval(AT_SECURE) == 0) {
        void *door = found.family ? open_door(found.family) : NULL;
        open_function *open = door ? (open_function *)dlsym(door, "polycast_door_open") : NULL;
        if (!found.family) {
            warn("no MPI library that polycast knows is loaded",
                 "expected Open MPI, MPICH or the MPI standard ABI");
        } else if (!open) {
            warn("no door for this MPI", dlerror());
        } else {
            open(&stock, &served);
        }
    }
    __atomic_store_n(&serve_configure, served.configure, __ATOMIC_RELEASE);
    __atomic_store_n(&serve_choice, served.choice, __ATOMIC_RELEASE);
    __atomic_store_n(&serve_bcast_c, served.bcast_c, __ATOMIC_RELEASE);
    __atomic_store_n(&serve_bcast, served.bcast, __ATOMIC_RELEASE);
}

static void resolve_once(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, resolve);
}

static int resolve_then_bcast(void *buffer, int count, handle type, int root, handle comm) {
    resolve_once();
    return __atomic_load_n(&serve_bcast, __ATOMIC_ACQUIRE)(buffer, count, type, root, comm);
}

static int resolve_then_bcast_c(void *buffer, int64_t count, handle type, int root, handle comm) {
    resolve_once();
    return __atomic_load_n(&serve_bcast_c, __ATOMIC_ACQUIRE)(buffer, count, type, root, comm);
}

EXPORT int PMPI_Bcast(void *buffer, int count, handle type, int root, handle comm) {
    return __atomic_load_n(&serve_bcast, __ATOMIC_RELAXED)(buffer, count, type, root, comm);
}

EXPORT int PMPI_Bcast_c(void *buffer, int64_t count, handle type, int root, handle comm) {
    return __atomic_load_n(&serve_bcast_c, __ATOMIC_RELAXED)(buffer, count, type, root, comm);
}

EXPORT int MPI_Bcast(void *, int, handle, int, handle) __attribute__((alias("PMPI_Bcast")));
EXPORT int MPI_Bcast_c(void *, int64_t, handle, int, handle) __attribute__((alias("PMPI_Bcast_c")));

/* Changes a setting of polycast from within a program (see polycast.h); -1 if polycast does not serve this
 * one. */
EXPORT int polycast_configure(const char *name, const char *value) {
    resolve_once();
    return serve_configure ? serve_configure(name, value) : -1;
}

/* Writes what serves a broadcast of `bytes` on `comm`, as POLYCAST_BCAST takes it; -1 if polycast does not serve this
 * program. */
EXPORT int polycast_choice(handle comm, int64_t bytes, char *text, int size) {
    resolve_once();
    return serve_choice ? serve_choice(comm, bytes, text, size) : -1;
}
