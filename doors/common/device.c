/*
 * Memory of GPUs, which a program may give to an MPI that knows them, and which the CPU must not touch.
 *
 * The vendor's library says what a pointer is. It is asked only if the program has loaded it; nothing is linked or opened.
 * What is found here decides how one rank gets at its bytes, never what the ranks choose.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "door.h"

/* Of CUDA's driver interface: CU_POINTER_ATTRIBUTE_*, CU_MEMORYTYPE_HOST, CUDA_SUCCESS; device pointers are 64-bit. */
#define CUDA_ATTRIBUTE_CONTEXT 1
#define CUDA_ATTRIBUTE_MEMORY_TYPE 2
#define CUDA_MEMORY_TYPE_HOST 1

/* hipMemcpyDefault: HIP finds out which way. */
#define HIP_COPY_DEFAULT 4

/* The beginning of hipPointerAttribute_t, alike since ROCm 4; what follows differs, and gets room. */
struct hip_attributes {
    int type; /* its values changed with ROCm 6 */
    int device;
    void *device_pointer;
    void *host_pointer; /* NULL where the host cannot reach the memory */
    char more[240];
};

typedef int cuda_attribute_function(void *value, int attribute, uint64_t pointer);
typedef int hip_attributes_function(void *attributes, const void *pointer);

/* The first function is set last (release, and acquire where it is read): who sees it sees the others. */
static struct {
    cuda_attribute_function *pointer_attribute;
    int (*copy)(uint64_t to, uint64_t from, size_t bytes);
    int (*push_context)(void *context);
    int (*pop_context)(void **context);
} cuda;

static struct {
    hip_attributes_function *pointer_attributes;
    int (*copy)(void *to, const void *from, size_t bytes, int kind);
    int (*last_error)(void);
} hip;

static void *opened_already(const char *name) {
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

static void look_for_cuda(void) {
    void *library = opened_already("libcuda.so.1");
    if (!library) {
        return;
    }
    *(void **)&cuda.copy = dlsym(library, "cuMemcpy");
    *(void **)&cuda.push_context = dlsym(library, "cuCtxPushCurrent_v2");
    *(void **)&cuda.pop_context = dlsym(library, "cuCtxPopCurrent_v2");
    if (cuda.copy && cuda.push_context && cuda.pop_context) {
        void *function = dlsym(library, "cuPointerGetAttribute");
        __atomic_store_n(&cuda.pointer_attribute, (cuda_attribute_function *)function, __ATOMIC_RELEASE);
    }
}

static void look_for_hip(void) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so.4", "libamdhip64.so"};
    void *library = NULL;
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++) {
        library = opened_already(names[i]);
    }
    if (!library) {
        return;
    }
    *(void **)&hip.copy = dlsym(library, "hipMemcpy");
    *(void **)&hip.last_error = dlsym(library, "hipGetLastError");
    if (hip.copy && hip.last_error) {
        void *function = dlsym(library, "hipPointerGetAttributes");
        __atomic_store_n(&hip.pointer_attributes, (hip_attributes_function *)function, __ATOMIC_RELEASE);
    }
}

static int note_loads(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    *(unsigned long long *)data = info->dlpi_adds;
    return 1;
}

/* Programs load these libraries when they like: they are looked for again whenever the process has loaded something. */
void door_look_for_devices(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static unsigned long long loads_seen;
    unsigned long long loads = 0;
    dl_iterate_phdr(note_loads, &loads);
    if (__atomic_load_n(&loads_seen, __ATOMIC_ACQUIRE) == loads) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (!cuda.pointer_attribute) {
        look_for_cuda();
    }
    if (!hip.pointer_attributes) {
        look_for_hip();
    }
    __atomic_store_n(&loads_seen, loads, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

/* Managed memory counts as the device's: copying it is right, too. */
static int is_of_cuda(const void *buffer) {
    cuda_attribute_function *pointer_attribute = __atomic_load_n(&cuda.pointer_attribute, __ATOMIC_ACQUIRE);
    int type = 0;
    return pointer_attribute && pointer_attribute(&type, CUDA_ATTRIBUTE_MEMORY_TYPE, (uint64_t)buffer) == 0 &&
           type != 0 && type != CUDA_MEMORY_TYPE_HOST;
}

static int is_of_hip(const void *buffer) {
    hip_attributes_function *pointer_attributes = __atomic_load_n(&hip.pointer_attributes, __ATOMIC_ACQUIRE);
    struct hip_attributes attributes;
    if (!pointer_attributes) {
        return 0;
    }
    memset(&attributes, 0, sizeof attributes);
    if (pointer_attributes(&attributes, buffer) != 0) {
        hip.last_error(); /* or the program would find an error that it did not make */
        return 0;
    }
    return attributes.device_pointer && !attributes.host_pointer;
}

enum memory door_memory_of(const void *buffer) {
    return is_of_cuda(buffer) ? CUDA_MEMORY : is_of_hip(buffer) ? HIP_MEMORY : HOST_MEMORY;
}

/* Copying needs a context, and this thread may have none, or another device's. */
static int copy_by_cuda(void *to, const void *from, size_t bytes) {
    void *context = NULL;
    if (cuda.pointer_attribute(&context, CUDA_ATTRIBUTE_CONTEXT, (uint64_t)to) != 0 || !context) {
        context = NULL;
        cuda.pointer_attribute(&context, CUDA_ATTRIBUTE_CONTEXT, (uint64_t)from);
    }
    int is_pushed = context && cuda.push_context(context) == 0;
    int error = cuda.copy((uint64_t)to, (uint64_t)from, bytes);
    if (is_pushed) {
        cuda.pop_context(&context);
    }
    return error;
}

int door_copy(enum memory memory, void *to, const void *from, size_t bytes) {
    int error =
        memory == CUDA_MEMORY ? copy_by_cuda(to, from, bytes) : hip.copy(to, from, bytes, HIP_COPY_DEFAULT);
    return error ? MPI_ERR_OTHER : MPI_SUCCESS;
}
