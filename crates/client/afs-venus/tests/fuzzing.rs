//! The fuzz targets of the crate, with seeded bytes.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn indexes_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        afs_venus::fuzzing::cache_index(&bytes);
    }

    #[test]
    fn records_of_unsaved_data_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        afs_venus::fuzzing::pin_list(&bytes);
        afs_venus::fuzzing::unsaved_record(&bytes);
    }
}
