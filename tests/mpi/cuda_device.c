/* Memory of a CUDA device, through the driver's interface, for bcast_device on machines that have one: what fake_device.h is elsewhere. */
#include "fake_device.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *driver(const char *name) {
    static void *library;
    library = library ? library : dlopen("libcuda.so.1", RTLD_NOW);
    void *function = library ? dlsym(library, name) : NULL;
    if (!function) {
        fprintf(stderr, "cuda_device: %s\n", dlerror());
        abort();
    }
    return function;
}

static void expect_success(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "cuda_device: %s: error %d of CUDA\n", what, error);
        abort();
    }
}

void *fake_allocate(size_t bytes) {
    int (*const initialize)(unsigned) = (int (*)(unsigned))driver("cuInit");
    int (*const get_device)(int *, int) = (int (*)(int *, int))driver("cuDeviceGet");
    int (*const retain)(void **, int) = (int (*)(void **, int))driver("cuDevicePrimaryCtxRetain");
    int (*const set_context)(void *) = (int (*)(void *))driver("cuCtxSetCurrent");
    int (*const allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))driver("cuMemAlloc_v2");
    int device;
    void *context;
    uint64_t pointer;
    expect_success(initialize(0), "cuInit");
    expect_success(get_device(&device, 0), "cuDeviceGet");
    expect_success(retain(&context, device), "cuDevicePrimaryCtxRetain");
    expect_success(set_context(context), "cuCtxSetCurrent");
    expect_success(allocate(&pointer, bytes), "cuMemAlloc");
    return (void *)pointer;
}

void fake_copy(void *to, const void *from, size_t bytes) {
    int (*const copy)(uint64_t, uint64_t, size_t) = (int (*)(uint64_t, uint64_t, size_t))driver("cuMemcpy");
    expect_success(copy((uint64_t)to, (uint64_t)from, bytes), "cuMemcpy");
}
