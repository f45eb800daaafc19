//! The fuzz target of the crate, with seeded bytes.

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn addresses_of_any_bytes_are_read_without_a_panic(
        scheme in prop::sample::select(vec!["", "http://", "https://", "https:/"]),
        rest in "[a-z0-9.:/@?#%\\[\\] -]{0,40}|\\PC{0,40}",
    ) {
        afs_s3::read_any_address(format!("{scheme}{rest}").as_bytes());
    }
}
