//! FPCR, which says how numbers are computed, and FPSR, which exceptions were raised.

use std::arch::asm;

/// The registers FPCR and FPSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    control: u64,
    raised: u64,
}

/// FPCR of the library's environment: no traps, rounding to the nearest, and denormal numbers are
/// what they are.
const DEFAULT_CONTROL: u64 = 0;

impl Environment {
    /// The environment that this thread leaves for that of the library.
    #[inline]
    pub fn left() -> Environment {
        let programs = Environment::now();
        if programs.control != DEFAULT_CONTROL {
            Environment { control: DEFAULT_CONTROL, ..programs }.enter();
        }
        programs
    }

    #[inline]
    pub fn restore(self) {
        if Environment::now() != self {
            self.enter();
        }
    }

    #[inline]
    pub fn now() -> Environment {
        let (control, raised);
        // SAFETY: any thread may read these registers.
        unsafe {
            asm!("mrs {}, fpcr", "mrs {}, fpsr", out(reg) control, out(reg) raised, options(nostack, preserves_flags));
        }
        Environment { control, raised }
    }

    #[inline]
    pub fn enter(self) {
        // SAFETY: any thread may write these registers, and this is what the processor has given.
        unsafe {
            asm!("msr fpcr, {}", "msr fpsr, {}", in(reg) self.control, in(reg) self.raised, options(nostack, preserves_flags));
        }
    }
}
