#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_bucket::fuzzing::objects(bytes));
