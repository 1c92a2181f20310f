//! MXCSR alone: nothing of the library is compiled for the x87, which has an environment of its own.

use std::arch::asm;

/// The register MXCSR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment(u32);

/// MXCSR of the library's environment: no traps, rounding to the nearest, and denormal numbers are
/// what they are.
const DEFAULT: u32 = 0x1f80;
/// Bits of the exceptions that were raised. They stay until somebody takes them away.
const RAISED: u32 = 0x3f;

impl Environment {
    /// The environment that this thread leaves for that of the library.
    #[inline]
    pub fn left() -> Environment {
        let programs = Environment::now();
        if programs.0 & !RAISED != DEFAULT {
            Environment(DEFAULT).enter();
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
        let mut mxcsr = 0;
        // SAFETY: it writes these four bytes.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut mxcsr, options(nostack, preserves_flags)) };
        Environment(mxcsr)
    }

    #[inline]
    pub fn enter(self) {
        // SAFETY: it reads these four bytes, which are what this processor has given, or those of a test.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const self.0, options(nostack, preserves_flags)) };
    }

    #[cfg(test)]
    pub fn mxcsr(self) -> u32 {
        self.0
    }

    #[cfg(test)]
    pub const fn of(mxcsr: u32) -> Environment {
        Environment(mxcsr)
    }
}
