/* Stands in for NVIDIA's libcuda.so.1: copies need the context that the memory belongs to. */
#include "fake_device.h"

#include <stdint.h>

enum { CONTEXT = 1, MEMORY_TYPE = 2, TYPE_DEVICE = 2, SUCCESS = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201 };

static int context_of_all;
static int contexts_pushed;

int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuMemcpy(uint64_t to, uint64_t from, size_t bytes);

int cuPointerGetAttribute(void *value, int attribute, uint64_t pointer) {
    if (!fake_is_device((const void *)pointer))
        return INVALID_VALUE;
    if (attribute == MEMORY_TYPE)
        *(int *)value = TYPE_DEVICE;
    else if (attribute == CONTEXT)
        *(void **)value = &context_of_all;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

int cuCtxPushCurrent_v2(void *context) {
    contexts_pushed += context == &context_of_all;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(void **context) {
    *context = &context_of_all;
    contexts_pushed--;
    return SUCCESS;
}

int cuMemcpy(uint64_t to, uint64_t from, size_t bytes) {
    if (contexts_pushed == 0)
        return INVALID_CONTEXT;
    fake_copy((void *)to, (const void *)from, bytes);
    return SUCCESS;
}
