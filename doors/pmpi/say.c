/* What the preloaded object says by itself. */
#include "say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

void say_warning(const char *what) {
    fprintf(stderr, "polycast: warning: %s; the stock MPI serves every call\n", what);
}

void say_missing(const char *function) {
    static int is_said;
    if (!__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED)) {
        fprintf(stderr, "polycast: warning: %s is called, and no MPI library that is loaded has it\n",
                function);
    }
}

int is_off(const char *variable) {
    const char *value = getenv(variable);
    return value && (!strcasecmp(value, "off") || !strcmp(value, "0") || !strcasecmp(value, "no") ||
                     !strcasecmp(value, "false"));
}

int is_report_wanted(void) {
    const char *value = getenv("POLYCAST_REPORT");
    return value && *value && !is_off("POLYCAST_REPORT");
}

void say_nothing_is_served(const char *why) {
    if (is_report_wanted()) {
        fprintf(stderr, "polycast: report: the stock MPI serves every call: %s\n", why);
    }
}

int is_first_process(void) {
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        const char *value = getenv(variables[i]);
        if (value) {
            return !strcmp(value, "0");
        }
    }
    return 1;
}

void tell_remedy(char *text, size_t room, const char *path) {
    snprintf(text, room,
             "Is %s on all nodes, and in LD_PRELOAD of all programs of the job? `polycast run` sees to that. "
             "To go on without polycast, start the job without it in LD_PRELOAD, as `polycast run --off` "
             "does; POLYCAST=off is not enough",
             path ? path : "libpolycast-mpi.so");
}
