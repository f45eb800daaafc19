#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_auth::rxkad::fuzzing::rxkad_handshake(bytes));
