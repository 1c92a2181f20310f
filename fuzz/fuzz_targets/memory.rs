#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| polycast_fuzz_bodies::memory(bytes));
