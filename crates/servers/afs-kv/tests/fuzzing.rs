//! The crate's fuzz target, over seeded bytes.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn logs_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        afs_kv::fuzzing::log(&bytes);
    }

    #[test]
    fn indexes_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0..3_u8, count in 0..9_u8) {
        let head = [bytes.first().copied().unwrap_or(0), kind, 0, count, 0];
        let rest = bytes.iter().skip(1).map(|byte| if count > 4 { *byte } else { byte % 7 });
        afs_kv::fuzzing::index(&head.into_iter().chain(rest).collect::<Vec<_>>());
    }
}
