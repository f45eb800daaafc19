#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_s3::read_any_address(bytes));
