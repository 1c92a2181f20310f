/*
 * srun --polycast ./a.out: a plug-in for Slurm that preloads polycast into the ranks, and only into them.
 *
 * One line in plugstack.conf, on all nodes:
 *   optional /usr/local/lib/polycast/slurm/spank_polycast.so
 * The library is the one that is installed with it; `library=PATH` behind the line names another one. `default=on` serves every
 * job step that does not say --polycast=off.
 *
 *   srun ── registers the option            (local)
 *   slurmstepd ── reads it for each task ── LD_PRELOAD in front of what the user has ── exec
 */
#include <dlfcn.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

SPANK_PLUGIN(polycast, 1)

enum { PATH_BYTES = 4096 };

static enum { UNSAID, ON, OFF } wanted = UNSAID;
static int is_default;
static char library[PATH_BYTES];

/* --polycast, --polycast=on, --polycast=off. */
static int hear(int value, const char *argument, int is_remote) {
    (void)value, (void)is_remote;
    if (!argument || !*argument || !strcmp(argument, "on")) {
        wanted = ON;
    } else if (!strcmp(argument, "off")) {
        wanted = OFF;
    } else {
        slurm_error("polycast: --polycast=%s: expected on or off", argument);
        return -1;
    }
    return 0;
}

static struct spank_option option = {
    "polycast", "on|off", "serve MPI collectives by polycast; --polycast=off: not", 2, 0, hear};

/* Beside this file's folder, where it was installed. */
static void find_library(void) {
    Dl_info self;
    if (!dladdr((void *)&find_library, &self) || !self.dli_fname) {
        return;
    }
    const char *slash = strrchr(self.dli_fname, '/');
    int length = slash ? (int)(slash - self.dli_fname) : 1;
    if (length + 32 < PATH_BYTES) {
        snprintf(library, sizeof library, "%.*s/../libpolycast-mpi.so", length, slash ? self.dli_fname : ".");
    }
}

static int read_arguments(int count, char **arguments) {
    for (int i = 0; i < count; i++) {
        /* The loader splits LD_PRELOAD at spaces and colons. */
        if (!strncmp(arguments[i], "library=", 8) && strlen(arguments[i] + 8) < PATH_BYTES &&
            !strpbrk(arguments[i], ": ")) {
            strcpy(library, arguments[i] + 8);
        } else if (!strcmp(arguments[i], "default=on") || !strcmp(arguments[i], "default=off")) {
            is_default = arguments[i][9] == 'n';
        } else {
            slurm_error("polycast: plugstack.conf: %s: expected library=PATH without spaces and colons, "
                        "default=on or default=off",
                        arguments[i]);
            return -1;
        }
    }
    return 0;
}

int slurm_spank_init(spank_t spank, int count, char **arguments) {
    find_library();
    if (read_arguments(count, arguments)) {
        return -1;
    }
    return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/* In the task's process, before the program. What cannot be done is said once per task, which then runs without polycast. If
 * others have it, they wait for this one in MPI_Init: it cannot be asked, nor can they be told from here. */
int slurm_spank_task_init(spank_t spank, int count, char **arguments) {
    (void)count, (void)arguments;
    char others[PATH_BYTES], all[2 * PATH_BYTES + 1];
    if (wanted == OFF || (wanted == UNSAID && !is_default)) {
        return 0;
    }
    if (access(library, R_OK)) {
        slurm_error("polycast: %s cannot be read on this node; unless that is so on all, the job hangs in "
                    "MPI_Init: install it on all nodes, or start the job without polycast",
                    library);
        return 0;
    }
    const char *preload = library;
    int found = spank_getenv(spank, "LD_PRELOAD", others, sizeof others);
    if (found == ESPANK_NOSPACE) {
        slurm_error(
            "polycast: LD_PRELOAD is longer than %d bytes and stays as it is; unless that is so for all "
            "ranks, the job hangs in MPI_Init",
            PATH_BYTES - 1);
        return 0;
    }
    if (found == ESPANK_SUCCESS && *others) {
        snprintf(all, sizeof all, "%s:%s", library, others);
        preload = all;
    }
    if (spank_setenv(spank, "LD_PRELOAD", preload, 1) != ESPANK_SUCCESS) {
        slurm_error(
            "polycast: LD_PRELOAD cannot be set; unless all ranks lack it, the job hangs in MPI_Init");
    }
    return 0;
}
