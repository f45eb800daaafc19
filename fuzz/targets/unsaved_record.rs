#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_venus::fuzzing::unsaved_record(bytes));
