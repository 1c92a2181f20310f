//! Functions of libc, which a program may have named its own like: `doors/libc/names.s` lists them, and here is where this object's calls of them are linked
//! to (docs/decisions/0065).

use std::arch::global_asm;
use std::ffi::{c_char, c_int, c_void};

#[cfg(target_arch = "x86_64")]
global_asm!(
    include_str!("../../../doors/libc/x86_64.s"),
    include_str!("../../../doors/libc/names.s"),
    ".pushsection .text.libc.find,\"ax\",@progbits",
    ".globl polycast_libc_find",
    ".hidden polycast_libc_find",
    "polycast_libc_find: jmp {find}",
    ".popsection",
    find = sym find,
    options(att_syntax)
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    include_str!("../../../doors/libc/aarch64.s"),
    include_str!("../../../doors/libc/names.s"),
    ".pushsection .text.libc.find,\"ax\",@progbits",
    ".globl polycast_libc_find",
    ".hidden polycast_libc_find",
    "polycast_libc_find: b {find}",
    ".popsection",
    find = sym find,
);

/// Finds a function of libc, as `polycast_libc_find` of `doors/libc/find.c` does.
extern "C" fn find(name: *const c_char) -> *mut c_void {
    // SAFETY: the names are C strings; nothing is loaded.
    unsafe {
        let libc = libc::dlopen(c"libc.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        let mut function = if libc.is_null() { libc } else { libc::dlsym(libc, name) };
        if function.is_null() {
            function = libc::dlsym(libc::RTLD_NEXT, name);
        }
        if function.is_null() { missing as *mut c_void } else { function }
    }
}

/// Stands for a function that the libc lacks: it is older than the one this was built with.
extern "C" fn missing() -> isize {
    // SAFETY: it is this thread's.
    unsafe { *libc::__errno_location() = libc::ENOSYS as c_int };
    -1
}
