/* Where a function of libc is, in libc itself: see names.s. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

void *polycast_libc_find(const char *name);

/* Of a libc that is older than the one this was built with. */
static long missing(void) {
    errno = ENOSYS;
    return -1;
}

void *polycast_libc_find(const char *name) {
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    void *function = libc ? dlsym(libc, name) : NULL;
    /* In a part of it that is an object of its own, or where it has another name. */
    function = function ? function : dlsym(RTLD_NEXT, name);
    return function ? function : (void *)missing;
}
