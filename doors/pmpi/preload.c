/*
 * libpolycast-mpi.so: the one object that is preloaded, for every MPI.
 *
 * It knows no MPI header and depends on no MPI library, so that it can be loaded into any process: a shell, a
 * Python that opens libmpi much later, a program of any MPI. When MPI begins (or, where that was not seen, at the first
 * call) it looks which libmpi the process has, opens the door that was built for this family, and asks all ranks
 * whether they can do the same. From then on a call costs one indirect call here.
 *
 * Handles (MPI_Comm, MPI_Datatype) are an int in one family and a pointer in another. On the platforms we
 * support both travel in one integer register, and a callee that expects an int ignores the upper half, so
 * `handle` passes either on untouched.
 *
 * The real function is the next PMPI_X in line (RTLD_NEXT); where libmpi was opened privately (RTLD_LOCAL, as
 * Python does) there is no next one, and it is looked up in libmpi itself. A tool that is linked into the program, or
 * preloaded behind us, has MPI_X of its own, which is called; its PMPI_X is ours again:
 *
 *   program ── MPI_Bcast ─▶ ours ── MPI_Bcast ─▶ the tool's ── PMPI_Bcast ─▶ ours ─▶ door or the MPI's PMPI_Bcast
 */
#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

#include "library.h"
#include "narrow.h"
#include "patience.h"
#include "polycast.h"
#include "say.h"
#include "vote.h"

#define EXPORT __attribute__((visibility("default")))

/* MPI error classes, the same in every family: MPI_ERR_COUNT, and the one that is MPI_ERR_OTHER or MPI_ERR_INTERN. */
#define ERROR_COUNT 2
#define ERROR_NO_FUNCTION 16

/* Where a call goes: first to the resolver, then to the door, or to the real function if there is no door. */
#define DECLARE(name, parameters, names, fits)                                                               \
    static name##_function resolve_then_##name, resolve_then_outer_##name;
#define DECLARE_C(name, parameters, names, fits) DECLARE(name##_c, parameters, names, fits)
POLYCAST_ENTRIES(DECLARE, DECLARE_C)

#define UNRESOLVED(name, parameters, names, fits) .name = resolve_then_##name,
#define UNRESOLVED_C(name, parameters, names, fits) UNRESOLVED(name##_c, parameters, names, fits)

static struct served now = {.entries = {POLYCAST_ENTRIES(UNRESOLVED, UNRESOLVED_C)}};

#define NOW(function) __atomic_load_n(&now.function, __ATOMIC_ACQUIRE)
#define PUBLISH(function) __atomic_store_n(&now.function, served->function, __ATOMIC_RELEASE)

/* Where a call of MPI_X goes: the same, or first to a tool. */
#define UNRESOLVED_OUTER(name, parameters, names, fits) .name = resolve_then_outer_##name,
#define UNRESOLVED_OUTER_C(name, parameters, names, fits) UNRESOLVED_OUTER(name##_c, parameters, names, fits)

static struct entries outer = {POLYCAST_ENTRIES(UNRESOLVED_OUTER, UNRESOLVED_OUTER_C)};

#define OUTER(name) __atomic_load_n(&outer.name, __ATOMIC_ACQUIRE)

static int is_settled; /* something was published */

/* The object that a function lies in, NULL for none. */
static void *object_of(void *function) {
    Dl_info info;
    return function && dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* The tool's, NULL if there is none: the next one in line, if it is not the MPI library's. */
static void *find_tool(const char *function, const void *mpi) {
    void *next = dlsym(RTLD_NEXT, function), *object = object_of(next);
    return object && mpi && object != mpi ? next : NULL;
}

static void publish(const struct served *served) {
    const void *mpi = object_of(dlsym(RTLD_NEXT, "PMPI_Wtime"));
    PUBLISH(configure);
    PUBLISH(choice);
    PUBLISH(begin);
    PUBLISH(window_made);
    PUBLISH(end);
    PUBLISH(aborting);
#define PUBLISH_ENTRY(name, parameters, names, fits)                                                         \
    {                                                                                                        \
        name##_function *tool = (name##_function *)find_tool("MPI_" #name, mpi);                             \
        PUBLISH(entries.name);                                                                               \
        __atomic_store_n(&outer.name, tool ? tool : served->entries.name, __ATOMIC_RELEASE);                 \
    }
#define PUBLISH_ENTRY_C(name, parameters, names, fits) PUBLISH_ENTRY(name##_c, parameters, names, fits)
    POLYCAST_ENTRIES(PUBLISH_ENTRY, PUBLISH_ENTRY_C)
    is_settled = 1;
}

/* What the resolver found; written once. */
static struct {
    struct mpi_library library;
    struct entries stock;
    enum standing standing;
    uint64_t build_identity;
    char problem[512]; /* why there is no door */
} found;

#define ARRAYS_FIT(counts, places, comm) narrow_blocks(&found.library, function, &(counts), &(places), comm)

/* For functions that the library does not have: there is none, or it has no functions with MPI_Count. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MISSING(name, parameters, names, fits)                                                               \
    static int no_##name parameters {                                                                        \
        say_missing("MPI_" #name);                                                                           \
        return ERROR_NO_FUNCTION;                                                                            \
    }
#define MISSING_C(name, parameters, names, fits)                                                             \
    static int no_##name##_c parameters {                                                                    \
        static const char function[] = #name;                                                                \
        (void)function;                                                                                      \
        return fits ? found.stock.name names : ERROR_COUNT;                                                  \
    }
POLYCAST_ENTRIES(MISSING, MISSING_C)
#pragma GCC diagnostic pop

/* Where this object is; NULL: nobody knows. */
static const char *own_path(void) {
    Dl_info self;
    return dladdr((void *)&own_path, &self) ? self.dli_fname : NULL;
}

/* Opens doors/polycast-door-FAMILY.so beside this object. */
static void *open_door(const char *family) {
    char path[4096];
    const char *own = own_path();
    if (!own) {
        return NULL;
    }
    const char *slash = strrchr(own, '/');
    int folder_length = slash ? (int)(slash - own) : 1;
    const char *folder = slash ? own : ".";
    int length = snprintf(path, sizeof path, "%.*s/doors/polycast-door-%s.so", folder_length, folder, family);
    return length < (int)sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static int is_found; /* one of them, at least */

static struct entries find_stock(const struct mpi_library *library) {
    struct entries stock;
#define FIND(name, parameters, names, fits)                                                                  \
    stock.name = (name##_function *)find_stock_function(library, "PMPI_" #name);                             \
    is_found = is_found || stock.name;                                                                       \
    stock.name = stock.name ? stock.name : no_##name;
#define FIND_C(name, parameters, names, fits) FIND(name##_c, parameters, names, fits)
    POLYCAST_ENTRIES(FIND, FIND_C)
    return stock;
}

/* This object, the door and the runtime behind it were compiled with the same polycast.h. */
static int are_of_one_version(void *door) {
    typedef uint32_t version_function(void);
    const uint32_t *doors = dlsym(door, "polycast_door_version");
    version_function *runtimes = (version_function *)dlsym(door, "polycast_interface_version");
    return doors && runtimes && *doors == POLYCAST_INTERFACE_VERSION &&
           runtimes() == POLYCAST_INTERFACE_VERSION;
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
    if (!are_of_one_version(door)) {
        snprintf(found.problem, sizeof found.problem,
                 "the door for this MPI is of another version of polycast; build it again");
        return STANDING_NO_DOOR;
    }
    open(&found.stock, served);
    found.build_identity = served->build_identity;
    /* The runtime may read its environment otherwise than we do. */
    return served->begin ? STANDING_READY : STANDING_OFF;
}

static void resolve(void) {
    found.library = find_mpi_library();
    found.stock = find_stock(&found.library);
    found.standing = STANDING_OFF;
    *found.problem = '\0';
    struct served served = {.entries = found.stock};
    /* In a program with more rights than its user nothing from outside is opened. */
    if (!is_off("POLYCAST") && getauxval(AT_SECURE) == 0) {
        found.standing = enter_door(&served);
    }
    /* Nothing is settled while there is no MPI: Python may open it later. */
    if (found.library.object || is_found) {
        publish(&served);
    }
}

/* Resolves what is not resolved yet. A rank that has not voted says its problem here. */
static void resolve_for_call(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int is_said;
    pthread_mutex_lock(&lock);
    if (!is_settled) {
        resolve();
        if (*found.problem && !is_said) {
            is_said = 1;
            /* All ranks have the same library, mostly. */
            if (found.library.family || is_first_process()) {
                say_warning(found.problem);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

#define RESOLVE_IN(table, resolver, name, parameters, names)                                                 \
    static int resolver##name parameters {                                                                   \
        resolve_for_call();                                                                                  \
        name##_function *function = __atomic_load_n(&table.name, __ATOMIC_ACQUIRE);                          \
        return (function == resolver##name ? no_##name : function) names;                                    \
    }
#define RESOLVE(name, parameters, names, fits)                                                               \
    RESOLVE_IN(now.entries, resolve_then_, name, parameters, names)                                          \
    RESOLVE_IN(outer, resolve_then_outer_, name, parameters, names)
#define RESOLVE_C(name, parameters, names, fits) RESOLVE(name##_c, parameters, names, fits)
POLYCAST_ENTRIES(RESOLVE, RESOLVE_C)

/* With the constants of the library that was found. */
static struct mpi_handles handles;

static int number_of(const char *function) {
    typedef int number_function(handle comm, int *number);
    number_function *number = (number_function *)find_stock_function(&found.library, function);
    int result;
    return number && number(handles.world, &result) == 0 ? result : -1;
}

static int least(const int64_t *mine, int64_t *all, int count) {
    Allreduce_function *allreduce = found.stock.Allreduce;
    return allreduce(mine, all, count, handles.int64, handles.min, handles.world);
}

static struct verdict ask_all_ranks(void) {
    if (!find_handles(&found.library, &handles)) {
        return (struct verdict){.is_served = 0,
                                .warning = "this MPI library has no MPI_COMM_WORLD where polycast looks for "
                                           "it, so ranks cannot ask each other",
                                .why = "MPI's constants are not known"};
    }
    const int rank = number_of("PMPI_Comm_rank"), size = number_of("PMPI_Comm_size");
    char remedy[REMEDY_BYTES];
    tell_remedy(remedy, sizeof remedy, own_path());
    const struct waiting waiting = {rank, size, "ranks that run without polycast or are late", remedy};
    patience_begins(&waiting);
    const struct verdict verdict =
        vote(rank, size, least, found.standing, found.build_identity, found.problem);
    patience_ends();
    return verdict;
}

static int has_begun;

EXPORT give_way_function polycast_give_way;

void polycast_give_way(configure_function *configure, choice_function *choice) {
    if (getauxval(AT_SECURE) == 0) {
        has_begun = 1;
        found.library = find_mpi_library();
        found.stock = find_stock(&found.library);
        const struct served served = {.entries = found.stock, .configure = configure, .choice = choice};
        publish(&served);
    }
}

/* MPI has begun: all ranks settle whether polycast serves. With an MPI that is none of ours nothing can be asked, and
 * the first broadcast says so, unless somebody wants a report. */
static void begin(void) {
    if (has_begun || getauxval(AT_SECURE) != 0) {
        return;
    }
    struct mpi_library library = find_mpi_library();
    if (!library.family) {
        if (is_report_wanted()) {
            resolve_for_call();
        }
        return;
    }
    has_begun = 1;
    resolve();
    struct verdict verdict = ask_all_ranks();
    if (*verdict.warning) {
        say_warning(verdict.warning);
    }
    if (!verdict.is_served) {
        if (number_of("PMPI_Comm_rank") == 0) {
            say_nothing_is_served(verdict.why);
        }
        const struct served stock = {.entries = found.stock};
        publish(&stock);
    } else if (now.begin) {
        now.begin();
    }
}

/* The next one in line, also of a library that is not known yet; NULL if there is none, which is said once. */
static void *next_function(const char *function) {
    const struct mpi_library unknown = {NULL, NULL};
    void *next = find_stock_function(&unknown, function);
    if (!next) {
        say_missing(function);
    }
    return next;
}

/* A tool behind us may have its own MPI_Init, which is to be called; it then calls PMPI_Init, which is ours again. */
#define BEGIN_BY(function, parameters, names)                                                                \
    EXPORT int function parameters {                                                                         \
        typedef int init_function parameters;                                                                \
        init_function *init = (init_function *)next_function(#function);                                     \
        if (!init) {                                                                                         \
            return ERROR_NO_FUNCTION;                                                                        \
        }                                                                                                    \
        int error = init names;                                                                              \
        if (!error) {                                                                                        \
            begin();                                                                                         \
        }                                                                                                    \
        return error;                                                                                        \
    }
#define BEGIN(name, parameters, names)                                                                       \
    BEGIN_BY(MPI_##name, parameters, names)                                                                  \
    BEGIN_BY(PMPI_##name, parameters, names)
POLYCAST_BEGINNINGS(BEGIN)

/* Open MPI's Fortran functions call PMPI's. Not with MPI_Count: who finds such a function here takes it for the MPI's. */
#define MAKE_WINDOW_BY(function, parameters, names)                                                          \
    EXPORT int function parameters {                                                                         \
        typedef int window_function parameters;                                                              \
        window_function *make = (window_function *)next_function(#function);                                 \
        if (!make) {                                                                                         \
            return ERROR_NO_FUNCTION;                                                                        \
        }                                                                                                    \
        void (*window_made)(void) = NOW(window_made);                                                        \
        if (window_made) {                                                                                   \
            window_made();                                                                                   \
        }                                                                                                    \
        return make names;                                                                                   \
    }
#define MAKE_WINDOW(name, parameters, names)                                                                 \
    MAKE_WINDOW_BY(MPI_##name, parameters, names)                                                            \
    MAKE_WINDOW_BY(PMPI_##name, parameters, names)
POLYCAST_WINDOWS(MAKE_WINDOW)

#define END_BY(function)                                                                                     \
    EXPORT int function(void *comm) {                                                                        \
        ending_function *stock = (ending_function *)next_function(#function);                                \
        if (!stock) {                                                                                        \
            return ERROR_NO_FUNCTION;                                                                        \
        }                                                                                                    \
        int (*end)(ending_function *, void *) = NOW(end);                                                    \
        return end && comm ? end(stock, comm) : stock(comm);                                                 \
    }
#define END(name)                                                                                            \
    END_BY(MPI_##name)                                                                                       \
    END_BY(PMPI_##name)
POLYCAST_ENDINGS(END)

#define ABORT_BY(function, parameters, names)                                                                \
    EXPORT int function parameters {                                                                         \
        typedef int abort_function parameters;                                                               \
        abort_function *stock = (abort_function *)next_function(#function);                                  \
        if (!stock) {                                                                                        \
            return ERROR_NO_FUNCTION;                                                                        \
        }                                                                                                    \
        void (*aborting)(void) = NOW(aborting);                                                              \
        if (aborting) {                                                                                      \
            aborting();                                                                                      \
        }                                                                                                    \
        return stock names;                                                                                  \
    }
#define ABORT(name, parameters, names)                                                                       \
    ABORT_BY(MPI_##name, parameters, names)                                                                  \
    ABORT_BY(PMPI_##name, parameters, names)
POLYCAST_ABORTS(ABORT)

#define ENTER(name, parameters, names, fits)                                                                 \
    EXPORT int PMPI_##name parameters {                                                                      \
        return NOW(entries.name) names;                                                                      \
    }                                                                                                        \
    EXPORT int MPI_##name parameters {                                                                       \
        return OUTER(name) names;                                                                            \
    }
#define ENTER_C(name, parameters, names, fits) ENTER(name##_c, parameters, names, fits)
POLYCAST_ENTRIES(ENTER, ENTER_C)

/* Changes a setting of polycast from within a program (see polycast.h); -1 if polycast does not serve this
 * one. */
EXPORT int polycast_configure(const char *name, const char *value) {
    resolve_for_call();
    configure_function *configure = NOW(configure);
    return configure ? configure(name, value) : -1;
}

/* Writes what serves a call of `bytes` of a collective, named as in "allreduce", on `comm`, as POLYCAST_ALLREDUCE takes it. 0; 1
 * while it is being compared with other ways; -1 if polycast does not serve this program, or there is no such collective. */
EXPORT int polycast_choice_of(const char *collective, handle comm, int64_t bytes, char *text, int size) {
    resolve_for_call();
    choice_function *choice = NOW(choice);
    return choice ? choice(collective, comm, bytes, text, size) : -1;
}

/* The same for broadcasts. */
EXPORT int polycast_choice(handle comm, int64_t bytes, char *text, int size) {
    return polycast_choice_of("bcast", comm, bytes, text, size);
}
