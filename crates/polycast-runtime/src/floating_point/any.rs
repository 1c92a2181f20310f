//! Environments by the C library's `fenv.h`, for machines of which nothing else is known here.

use std::ffi::c_int;

/// Memory for a `fenv_t`, larger than any machine's.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub struct Environment([u64; 16]);

/// Value of `FE_TONEAREST`, on all of Linux's machines that have it.
const FE_TONEAREST: c_int = 0;

unsafe extern "C" {
    fn feholdexcept(environment: *mut Environment) -> c_int;
    fn fesetenv(environment: *const Environment) -> c_int;
    fn fesetround(mode: c_int) -> c_int;
}

impl Environment {
    /// The environment that this thread leaves for that of the library.
    pub fn left() -> Environment {
        let mut programs = Environment([0; 16]);
        // SAFETY: there is room for it.
        unsafe {
            feholdexcept(&mut programs);
            fesetround(FE_TONEAREST);
        }
        programs
    }

    pub fn restore(self) {
        // SAFETY: it was filled by `left`.
        unsafe { fesetenv(&self) };
    }
}
