/* Memory that faults when the CPU touches it, except within `fake_copy`: what the stand-ins for the vendors' libraries share. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stddef.h>

void *fake_allocate(size_t bytes);
/* Between any two places, as the vendor's own copy does. */
void fake_copy(void *to, const void *from, size_t bytes);
int fake_is_device(const void *pointer);

#endif
