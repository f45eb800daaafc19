//! The fuzz target of the crate, on seeded random bytes.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn rows_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        afs_volume::fuzzing::index_row(&bytes);
    }
}
