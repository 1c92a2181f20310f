/* MPI comes in through a plugin that is opened with RTLD_LOCAL, as in Python: libmpi is no dependency of the
 * program and its symbols are in no global scope. The plugin lies beside the program. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char self[PATH_MAX] = {0}, path[PATH_MAX + 16];
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return fprintf(stderr, "FAIL: cannot read /proc/self/exe\n"), 1;
    snprintf(path, sizeof path, "%s/plugin.so", dirname(self));
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        return fprintf(stderr, "FAIL: %s\n", dlerror()), 1;
    int (*plugin_main)(int *, char ***) = (int (*)(int *, char ***))dlsym(plugin, "plugin_main");
    if (!plugin_main)
        return fprintf(stderr, "FAIL: %s\n", dlerror()), 1;
    return plugin_main(&argc, &argv);
}
