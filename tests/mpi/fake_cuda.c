/* Stands in for NVIDIA's libcuda.so.1: its memory faults when the CPU touches it, except within cuMemcpy. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { CONTEXT = 1, MEMORY_TYPE = 2, TYPE_DEVICE = 2, SUCCESS = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201 };

static char *memory;
static size_t memory_bytes;
static int is_context_current;

void *fake_allocate(size_t bytes);
int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);

void *fake_allocate(size_t bytes) {
    memory_bytes = bytes;
    memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    is_context_current = 1; /* of the caller */
    return memory == MAP_FAILED ? NULL : memory;
}

static int is_device(uint64_t pointer) {
    return memory && pointer >= (uint64_t)memory && pointer < (uint64_t)memory + memory_bytes;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer) {
    if (!is_device(pointer))
        return INVALID_VALUE;
    if (attribute == MEMORY_TYPE)
        *(int *)value = TYPE_DEVICE;
    else if (attribute == CONTEXT)
        *(void **)value = &memory;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
    is_context_current += context == &memory;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = &memory;
    is_context_current--;
    return SUCCESS;
}

int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
    if (!is_context_current)
        return INVALID_CONTEXT;
    mprotect(memory, memory_bytes, PROT_READ | PROT_WRITE);
    memcpy((void *)to, (const void *)from, bytes);
    mprotect(memory, memory_bytes, PROT_NONE);
    return SUCCESS;
}
