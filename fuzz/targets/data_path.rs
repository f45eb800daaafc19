#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_datapath::fuzzing::data_path(bytes));
