/* Preloaded before polycast on some ranks, it makes them say that they run another build. */
#include <stdint.h>

uint64_t polycast_build_identity(void);

uint64_t polycast_build_identity(void) {
    return 0x0123456789abcdef;
}
