//! The crate's fuzz target, over seeded bytes.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn logs_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        afs_kv::fuzzing::log(&bytes);
    }
}
