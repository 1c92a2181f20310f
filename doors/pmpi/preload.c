/*
 * libpolycast-mpi.so: the one object that is preloaded, for every MPI.
 *
 * It knows no MPI header and depends on no MPI library, so that it can be loaded into any process: a shell, a
 * Python that opens libmpi much later, a program of any MPI. When MPI begins (or, where that was not seen, at the first
 * broadcast) it looks which libmpi the process has, opens the door that was built for this family, and asks all ranks
 * whether they can do the same. From then on a broadcast costs one indirect call here.
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
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/auxv.h>

#include "library.h"
#include "vote.h"

#define EXPORT __attribute__((visibility("default")))

/* MPI error classes, the same in every family: MPI_ERR_COUNT, and the one that is MPI_ERR_OTHER or MPI_ERR_INTERN. */
#define ERROR_COUNT 2
#define ERROR_NO_FUNCTION 16

static bcast_function resolve_then_bcast;
static bcast_c_function resolve_then_bcast_c;
static ibcast_function resolve_then_ibcast;
static ibcast_c_function resolve_then_ibcast_c;

/* Where a call goes: first to the resolver, then to the door, or to the real function if there is no door. */
static struct served now = {
    .bcast = resolve_then_bcast,
    .bcast_c = resolve_then_bcast_c,
    .ibcast = resolve_then_ibcast,
    .ibcast_c = resolve_then_ibcast_c,
};

#define NOW(function) __atomic_load_n(&now.function, __ATOMIC_ACQUIRE)

static void publish(const struct served *served) {
    __atomic_store_n(&now.configure, served->configure, __ATOMIC_RELEASE);
    __atomic_store_n(&now.choice, served->choice, __ATOMIC_RELEASE);
    __atomic_store_n(&now.begin, served->begin, __ATOMIC_RELEASE);
    __atomic_store_n(&now.ibcast_c, served->ibcast_c, __ATOMIC_RELEASE);
    __atomic_store_n(&now.ibcast, served->ibcast, __ATOMIC_RELEASE);
    __atomic_store_n(&now.bcast_c, served->bcast_c, __ATOMIC_RELEASE);
    __atomic_store_n(&now.bcast, served->bcast, __ATOMIC_RELEASE);
}

static void warn(const char *what) {
    fprintf(stderr, "polycast: warning: %s; the stock MPI serves every call\n", what);
}

/* For a program that calls a function which no object of its process has. */
static void warn_of_missing(const char *function) {
    static int is_said;
    if (!__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED)) {
        fprintf(stderr, "polycast: warning: %s is called, and no MPI library that is loaded has it\n",
                function);
    }
}

static int no_bcast(void *buffer, int count, handle type, int root, handle comm) {
    (void)buffer, (void)count, (void)type, (void)root, (void)comm;
    warn_of_missing("MPI_Bcast");
    return ERROR_NO_FUNCTION;
}

static int no_ibcast(void *buffer, int count, handle type, int root, handle comm, handle *request) {
    (void)buffer, (void)count, (void)type, (void)root, (void)comm, (void)request;
    warn_of_missing("MPI_Ibcast");
    return ERROR_NO_FUNCTION;
}

/* For a program that calls MPI_Bcast_c although its library has none. */
static int bcast_c_without_library(void *buffer, int64_t count, handle type, int root, handle comm) {
    return count < INT_MIN || count > INT_MAX ? ERROR_COUNT
                                              : PMPI_Bcast(buffer, (int)count, type, root, comm);
}

static int ibcast_c_without_library(void *buffer, int64_t count, handle type, int root, handle comm,
                                    handle *request) {
    return count < INT_MIN || count > INT_MAX ? ERROR_COUNT
                                              : PMPI_Ibcast(buffer, (int)count, type, root, comm, request);
}

/* A variable that says "no". The same words as polycast_is_enabled in the runtime. */
static int is_switched_off(void) {
    const char *value = getenv("POLYCAST");
    return value && (!strcasecmp(value, "off") || !strcmp(value, "0") || !strcasecmp(value, "no") ||
                     !strcasecmp(value, "false"));
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

/* What the resolver found; written once. */
static struct {
    struct mpi_library library;
    struct stock stock;
    enum standing standing;
    uint64_t build_identity;
    char problem[512]; /* why there is no door */
} found;

static struct stock find_stock(const struct mpi_library *library) {
    struct stock stock = {
        .bcast = (bcast_function *)find_stock_function(library, "PMPI_Bcast"),
        .bcast_c = (bcast_c_function *)find_stock_function(library, "PMPI_Bcast_c"),
        .ibcast = (ibcast_function *)find_stock_function(library, "PMPI_Ibcast"),
        .ibcast_c = (ibcast_c_function *)find_stock_function(library, "PMPI_Ibcast_c"),
    };
    stock.bcast = stock.bcast ? stock.bcast : no_bcast;
    stock.bcast_c = stock.bcast_c ? stock.bcast_c : bcast_c_without_library;
    stock.ibcast = stock.ibcast ? stock.ibcast : no_ibcast;
    stock.ibcast_c = stock.ibcast_c ? stock.ibcast_c : ibcast_c_without_library;
    return stock;
}

/* Everything by the library. */
static struct served only_stock(void) {
    const struct stock *stock = &found.stock;
    return (struct served){.bcast = stock->bcast,
                           .bcast_c = stock->bcast_c,
                           .ibcast = stock->ibcast,
                           .ibcast_c = stock->ibcast_c};
}

/* STANDING_READY and the door's functions, or why there is no door. */
static enum standing enter_door(struct served *served) {
    if (!found.library.family) {
        snprintf(
            found.problem, sizeof found.problem, "%s",
            "no MPI library that polycast knows is loaded: expected Open MPI, MPICH or the MPI standard ABI");
        return STANDING_NO_DOOR;
    }
    void *door = open_door(found.library.family);
    open_function *open = door ? (open_function *)dlsym(door, "polycast_door_open") : NULL;
    if (!open) {
        const char *reason = dlerror();
        snprintf(found.problem, sizeof found.problem, "no door for this MPI: %s",
                 reason ? reason : "the path is too long");
        return STANDING_NO_DOOR;
    }
    open(&found.stock, served);
    found.build_identity = served->build_identity;
    return STANDING_READY;
}

static void resolve(void) {
    found.library = find_mpi_library();
    found.stock = find_stock(&found.library);
    found.standing = STANDING_OFF;
    *found.problem = '\0';
    struct served served = only_stock();
    /* In a program with more rights than its user nothing from outside is opened. */
    if (!is_switched_off() && getauxval(AT_SECURE) == 0) {
        found.standing = enter_door(&served);
    }
    /* Nothing is settled while there is no MPI: Python may open it later. */
    if (found.library.object || found.stock.bcast != no_bcast) {
        publish(&served);
    }
}

/* Resolves what is not resolved yet. A rank that has not voted says its problem here. */
static void resolve_for_call(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_said;
    pthread_mutex_lock(&lock);
    if (now.bcast == resolve_then_bcast) {
        resolve();
        if (*found.problem && !is_said) {
            is_said = 1;
            warn(found.problem);
        }
    }
    pthread_mutex_unlock(&lock);
}

static int resolve_then_bcast(void *buffer, int count, handle type, int root, handle comm) {
    resolve_for_call();
    bcast_function *bcast = NOW(bcast);
    return (bcast == resolve_then_bcast ? no_bcast : bcast)(buffer, count, type, root, comm);
}

static int resolve_then_bcast_c(void *buffer, int64_t count, handle type, int root, handle comm) {
    resolve_for_call();
    bcast_c_function *bcast_c = NOW(bcast_c);
    return (bcast_c == resolve_then_bcast_c ? bcast_c_without_library : bcast_c)(buffer, count, type, root,
                                                                                 comm);
}

static int resolve_then_ibcast(void *buffer, int count, handle type, int root, handle comm, handle *request) {
    resolve_for_call();
    ibcast_function *ibcast = NOW(ibcast);
    return (ibcast == resolve_then_ibcast ? no_ibcast : ibcast)(buffer, count, type, root, comm, request);
}

static int resolve_then_ibcast_c(void *buffer, int64_t count, handle type, int root, handle comm,
                                 handle *request) {
    resolve_for_call();
    ibcast_c_function *ibcast_c = NOW(ibcast_c);
    return (ibcast_c == resolve_then_ibcast_c ? ibcast_c_without_library : ibcast_c)(buffer, count, type,
                                                                                     root, comm, request);
}

/* MPI has begun: all ranks settle whether polycast serves. With an MPI that is none of ours nothing can be asked, and
 * the first broadcast says so. */
static void begin(void) {
    static int has_begun;
    if (has_begun || getauxval(AT_SECURE) != 0) {
        return;
    }
    struct mpi_library library = find_mpi_library();
    if (!library.family) {
        return;
    }
    has_begun = 1;
    resolve();
    struct verdict verdict = vote(&library, found.standing, found.build_identity, found.problem);
    if (*verdict.warning) {
        warn(verdict.warning);
    }
    if (!verdict.is_served) {
        const struct served stock = only_stock();
        publish(&stock);
    } else if (now.begin) {
        now.begin();
    }
}

/* A tool behind us may have its own MPI_Init, which is to be called; it then calls PMPI_Init, which is ours again. */
static int init_by(const char *name, int *argc, char ***argv) {
    const struct mpi_library unknown = {NULL, NULL};
    init_function *init = (init_function *)find_stock_function(&unknown, name);
    if (!init) {
        warn_of_missing(name);
        return ERROR_NO_FUNCTION;
    }
    int error = init(argc, argv);
    if (!error) {
        begin();
    }
    return error;
}

static int init_thread_by(const char *name, int *argc, char ***argv, int required, int *provided) {
    const struct mpi_library unknown = {NULL, NULL};
    init_thread_function *init = (init_thread_function *)find_stock_function(&unknown, name);
    if (!init) {
        warn_of_missing(name);
        return ERROR_NO_FUNCTION;
    }
    int error = init(argc, argv, required, provided);
    if (!error) {
        begin();
    }
    return error;
}

EXPORT int MPI_Init(int *argc, char ***argv) {
    return init_by("MPI_Init", argc, argv);
}

EXPORT int PMPI_Init(int *argc, char ***argv) {
    return init_by("PMPI_Init", argc, argv);
}

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return init_thread_by("MPI_Init_thread", argc, argv, required, provided);
}

EXPORT int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    return init_thread_by("PMPI_Init_thread", argc, argv, required, provided);
}

EXPORT int PMPI_Bcast(void *buffer, int count, handle type, int root, handle comm) {
    return NOW(bcast)(buffer, count, type, root, comm);
}

EXPORT int PMPI_Bcast_c(void *buffer, int64_t count, handle type, int root, handle comm) {
    return NOW(bcast_c)(buffer, count, type, root, comm);
}

EXPORT int PMPI_Ibcast(void *buffer, int count, handle type, int root, handle comm, handle *request) {
    return NOW(ibcast)(buffer, count, type, root, comm, request);
}

EXPORT int PMPI_Ibcast_c(void *buffer, int64_t count, handle type, int root, handle comm, handle *request) {
    return NOW(ibcast_c)(buffer, count, type, root, comm, request);
}

EXPORT int MPI_Bcast(void *, int, handle, int, handle) __attribute__((alias("PMPI_Bcast")));
EXPORT int MPI_Bcast_c(void *, int64_t, handle, int, handle) __attribute__((alias("PMPI_Bcast_c")));
EXPORT int MPI_Ibcast(void *, int, handle, int, handle, handle *) __attribute__((alias("PMPI_Ibcast")));
EXPORT int MPI_Ibcast_c(void *, int64_t, handle, int, handle, handle *)
    __attribute__((alias("PMPI_Ibcast_c")));

/* Changes a setting of polycast from within a program (see polycast.h); -1 if polycast does not serve this
 * one. */
EXPORT int polycast_configure(const char *name, const char *value) {
    resolve_for_call();
    configure_function *configure = NOW(configure);
    return configure ? configure(name, value) : -1;
}

/* Writes what serves a broadcast of `bytes` on `comm`, as POLYCAST_BCAST takes it; -1 if polycast does not serve this
 * program. */
EXPORT int polycast_choice(handle comm, int64_t bytes, char *text, int size) {
    resolve_for_call();
    choice_function *choice = NOW(choice);
    return choice ? choice(comm, bytes, text, size) : -1;
}
