#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| andrew::fuzzing::settings(bytes));
