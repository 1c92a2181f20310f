#include "fake_device.h"

#include <string.h>
#include <sys/mman.h>

static char *memory;
static size_t memory_bytes;

void *fake_allocate(size_t bytes) {
    memory_bytes = bytes;
    memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int fake_is_device(const void *pointer) {
    return memory && (const char *)pointer >= memory && (const char *)pointer < memory + memory_bytes;
}

void fake_copy(void *to, const void *from, size_t bytes) {
    mprotect(memory, memory_bytes, PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    mprotect(memory, memory_bytes, PROT_NONE);
}
