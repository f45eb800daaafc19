#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| afs_krb5::fuzzing::kerberos(bytes));
