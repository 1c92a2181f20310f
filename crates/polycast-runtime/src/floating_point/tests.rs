use std::hint::black_box;

use super::*;

/// Invalid operations, divisions by zero and overflows trap; upwards; what is very small is zero.
const ODD: u32 = 0x1f80 & !0x280 & !0x400 | 0x4000 | 0x8040;
const INVALID: u32 = 0x01;
const INEXACT: u32 = 0x20;

/// Runs it on a thread of its own, which has this environment.
fn on_thread_with(mxcsr: u32, work: impl FnOnce() + Send + 'static) {
    let run = move || {
        Environment::of(mxcsr).enter();
        work();
        Environment::of(0x1f80).enter();
    };
    std::thread::spawn(run).join().unwrap();
}

fn now() -> Environment {
    Environment::now()
}

/// What raises all exceptions, and is another number with another rounding.
fn computed() -> [u64; 3] {
    let (one, zero, most) = black_box((1.0_f64, 0.0, f64::MAX));
    black_box([zero / black_box(zero), one / zero, most * most]);
    [one / black_box(3.0), black_box(-1.0) / black_box(3.0), f64::from_bits(1) * black_box(1.0)]
        .map(f64::to_bits)
}

#[test]
fn the_library_computes_alike_whatever_the_program_has_set() {
    for mxcsr in [0x1f80, ODD, ODD ^ 0x2000, 0x1f80 | 0x2000, 0x1f80 | 0x6000, 0x0000, 0x9fc0] {
        on_thread_with(mxcsr, move || {
            let found = apart(computed);
            assert_eq!(now(), Environment::of(mxcsr), "{mxcsr:x}");
            assert_eq!(found, [0x3fd5_5555_5555_5555, 0xbfd5_5555_5555_5555, 1], "{mxcsr:x}");
        });
    }
}

#[test]
fn exceptions_that_the_program_has_raised_stay_and_ours_do_not() {
    on_thread_with(0x1f80 | INEXACT, || {
        apart(computed);
        assert_eq!(now(), Environment::of(0x1f80 | INEXACT));
    });
}

#[test]
fn what_is_not_the_librarys_has_the_programs_environment_and_may_change_it() {
    on_thread_with(ODD, || {
        apart(|| {
            computed();
            let third = as_programs(|| {
                assert_eq!(now(), Environment::of(ODD));
                // As a sum of the program's would.
                Environment::of(ODD | INVALID | INEXACT).enter();
                (black_box(1.0) / black_box(3.0_f64)).to_bits()
            });
            assert_eq!(third, 0x3fd5_5555_5555_5556, "upwards");
            computed();
            as_programs(|| assert_eq!(now(), Environment::of(ODD | INVALID | INEXACT)));
        });
        assert_eq!(now(), Environment::of(ODD | INVALID | INEXACT));
    });
}

#[test]
fn callbacks_of_the_program_may_call_the_library() {
    on_thread_with(ODD, || {
        apart(|| {
            as_programs(|| {
                Environment::of(0x1f80 | 0x2000).enter();
                apart(|| as_programs(|| assert_eq!(now(), Environment::of(0x1f80 | 0x2000))));
                assert_eq!(now(), Environment::of(0x1f80 | 0x2000));
                Environment::of(ODD).enter();
            });
            assert_eq!(computed()[0], 0x3fd5_5555_5555_5555);
            as_programs(|| assert_eq!(now(), Environment::of(ODD)));
        });
        assert_eq!(now(), Environment::of(ODD));
    });
}

#[test]
fn by_the_c_librarys_functions_it_is_the_same() {
    on_thread_with(0x1f80 & !0x280 | 0x4000 | INEXACT, || {
        let before = now();
        let programs = any::Environment::left();
        assert_eq!(computed()[..2], [0x3fd5_5555_5555_5555, 0xbfd5_5555_5555_5555]);
        programs.restore();
        assert_eq!(now(), before);
    });
}
