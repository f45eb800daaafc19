//! The fuzz targets of the crate, over seeded bytes.

use afs_db::fuzzing::{import_location, import_protection};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_databases_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        import_location(&bytes);
        import_protection(&bytes);
    }
}
