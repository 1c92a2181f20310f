/* Stands in for AMD's libamdhip64.so.6: memory of the host is an error there, which stays until it is asked for. */
#include "fake_device.h"

#include <string.h>

enum { TYPE_DEVICE = 2, COPY_DEFAULT = 4, SUCCESS = 0, INVALID_VALUE = 1 };

/* As hip_runtime_api.h of ROCm 6 has it. */
struct pointer_attributes {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int is_managed;
    unsigned allocation_flags;
};

static int last_error;

int hipPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer);
int hipMemcpy(void *to, const void *from, size_t bytes, int kind);
int hipGetLastError(void);

int hipPointerGetAttributes(struct pointer_attributes *attributes, const void *pointer) {
    if (!fake_is_device(pointer))
        return last_error = INVALID_VALUE;
    memset(attributes, 0, sizeof *attributes);
    attributes->type = TYPE_DEVICE;
    attributes->device_pointer = (void *)pointer;
    return SUCCESS;
}

/* An error that nobody has taken away would be found by the program. */
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    if (kind != COPY_DEFAULT || last_error)
        return last_error = INVALID_VALUE;
    fake_copy(to, from, bytes);
    return SUCCESS;
}

int hipGetLastError(void) {
    int error = last_error;
    last_error = SUCCESS;
    return error;
}
