#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| andrew::fuzzing::local_sockets(bytes));
