/*
 * Finds the MPI library of this process by what it defines, never by a file name: the same library is opened as
 * libmpi.so, libmpi.so.40, or by any path, its soname differs between builds of one interface (Debian's MPICH is
 * libmpich.so.12, everybody else's libmpi.so.12), and Open MPI 1.10 and MPICH have the same one.
 */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Long enough for every MPI's MPI_MAX_LIBRARY_VERSION_STRING (8192 in MPICH). */
#define VERSION_MOST_BYTES 16384

/* Every MPI has it since version 3, tools have no reason to replace it, and it may be called at any time. */
static const char distinguishing_function[] = "MPI_Get_library_version";

typedef int version_function(char *version, int *length);
typedef int abi_version_function(int *major, int *minor);

/* Names of the loaded objects, as dlopen knows them. */
struct names {
    char **name;
    size_t count, capacity;
};

/* dlopen must not be called from within dl_iterate_phdr, so names are noted first. */
static int note_name(struct dl_phdr_info *info, size_t size, void *data) {
    struct names *names = data;
    (void)size;
    if (!info->dlpi_name || !*info->dlpi_name) {
        return 0; /* the program itself: its symbols are global */
    }
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 64;
        char **grown = realloc(names->name, capacity * sizeof *grown);
        if (!grown) {
            return 1;
        }
        names->name = grown;
        names->capacity = capacity;
    }
    char *copy = strdup(info->dlpi_name);
    if (copy) {
        names->name[names->count++] = copy;
    }
    return 0;
}

static int is_in_this_object(const void *address) {
    Dl_info self, other;
    return dladdr((const void *)&find_mpi_library, &self) && dladdr(address, &other) &&
           self.dli_fbase == other.dli_fbase;
}

/* Looks in every loaded object, those that were opened privately included. */
static void *find_anywhere(const char *name) {
    struct names names = {0};
    void *found = NULL;
    dl_iterate_phdr(note_name, &names);
    for (size_t i = 0; i < names.count; i++) {
        void *object = found ? NULL : dlopen(names.name[i], RTLD_LAZY | RTLD_NOLOAD);
        void *symbol = object ? dlsym(object, name) : NULL;
        if (symbol && !is_in_this_object(symbol)) {
            found = symbol;
        }
        if (object) {
            dlclose(object);
        }
        free(names.name[i]);
    }
    free(names.name);
    return found;
}

/* The object that an address lies in, its symbols made global. It stays open. */
static void *open_object_of(const void *address) {
    Dl_info info;
    struct link_map *map;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map) {
        return NULL;
    }
    /* The program itself has no name. */
    return *map->l_name ? dlopen(map->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL)
                        : dlopen(NULL, RTLD_LAZY);
}

/* MPICH 5 has the function of the standard ABI also where it does not follow it: the version is negative then. */
static int has_standard_abi(void *object) {
    abi_version_function *abi_version = (abi_version_function *)dlsym(object, "MPI_Abi_get_version");
    int major = -1, minor = -1;
    return abi_version && abi_version(&major, &minor) == 0 && major > 0;
}

static int is_kin_of_mpich(version_function *library_version) {
    static const char *const words[] = {"MPICH", "MVAPICH", "Intel(R) MPI"};
    char *version = calloc(1, VERSION_MOST_BYTES);
    int length, is_kin = 0;
    if (version && library_version(version, &length) == 0) {
        version[VERSION_MOST_BYTES - 1] = '\0';
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            is_kin = is_kin || strstr(version, words[i]);
        }
    }
    free(version);
    return is_kin;
}

static const char *family_of(void *object, version_function *library_version) {
    if (has_standard_abi(object)) {
        return "abi";
    }
    if (dlsym(object, "ompi_mpi_comm_world")) {
        return "openmpi";
    }
    return is_kin_of_mpich(library_version) ? "mpich" : NULL;
}

struct mpi_library find_mpi_library(void) {
    struct mpi_library library = {NULL, NULL};
    void *function = dlsym(RTLD_NEXT, distinguishing_function);
    if (!function) {
        function = find_anywhere(distinguishing_function);
    }
    if (function) {
        library.object = open_object_of(function);
    }
    if (library.object) {
        library.family = family_of(library.object, (version_function *)function);
    }
    return library;
}

void *find_stock_function(const struct mpi_library *library, const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (!function && library->object) {
        function = dlsym(library->object, name);
        /* In the program's own scope we come first. */
        function = function && is_in_this_object(function) ? NULL : function;
    }
    /* Elsewhere it would be another library's. */
    return function || library->object ? function : find_anywhere(name);
}

/* Open MPI's handles are addresses of variables, of which a program may hold its own copy (a copy relocation): that one
 * counts, and the global scope has it first. The library's symbols are global by now. */
static handle address_of(const char *variable) {
    return (handle)dlsym(RTLD_DEFAULT, variable);
}

int find_handles(const struct mpi_library *library, struct mpi_handles *handles) {
    if (!library->family) {
        return 0;
    }
    if (strcmp(library->family, "openmpi") == 0) {
        *handles = (struct mpi_handles){address_of("ompi_mpi_comm_world"), address_of("ompi_mpi_int64_t"),
                                        address_of("ompi_mpi_op_min")};
        return handles->world && handles->int64 && handles->min;
    }
    if (strcmp(library->family, "mpich") == 0) {
        *handles = (struct mpi_handles){.world = 0x44000000, .int64 = 0x4c00083a, .min = 0x58000002};
    } else {
        *handles = (struct mpi_handles){.world = 0x101, .int64 = 0x258, .min = 0x22};
    }
    return 1;
}
