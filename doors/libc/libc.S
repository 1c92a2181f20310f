/* For the objects that are written in C; the runtime has the same by libc_names.rs. On other machines the dynamic linker finds all names. */
#if defined __x86_64__
#include "x86_64.s"
#include "names.s"
#elif defined __aarch64__
#include "aarch64.s"
#include "names.s"
#endif
.section .note.GNU-stack, "", %progbits
