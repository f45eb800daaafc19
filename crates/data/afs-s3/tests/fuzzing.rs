//! The fuzz targets of the crate, with seeded bytes.

use afs_s3::fuzzing::{store_credentials, store_replies};
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

/// What a store lists, with an object whose key is of another drive.
const LISTING: &str = "<?xml version=\"1.0\"?><ListBucketResult><Name>andrew</Name><KeyCount>2</KeyCount><IsTruncated>true</IsTruncated>\
<NextContinuationToken>t</NextContinuationToken><Contents><Key>drive/packs/0000000000000002</Key><Size>9</Size>\
<LastModified>2026-11-21T10:00:00.000Z</LastModified></Contents><Contents><Key>other/k</Key><Size>1</Size>\
<LastModified>2026-11-21T10:00:00.000Z</LastModified></Contents></ListBucketResult>";
const REFUSAL: &str = "<Error><Code>SlowDown</Code><Message>Please reduce</Message></Error>";

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replies_of_any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        sample in prop::sample::select(vec![LISTING, REFUSAL, "abcd", ""]),
        head in any::<[u8; 2]>(),
        at in any::<usize>(),
        change in any::<u8>(),
    ) {
        store_replies(&bytes);
        store_replies(&[&head[..], &bytes].concat());
        let mut reply = [&head[..], sample.as_bytes()].concat();
        store_replies(&reply);
        store_replies(&reply[..at % (reply.len() + 1)]);
        let at = at % reply.len();
        reply[at] ^= change;
        store_replies(&reply);
    }

    #[test]
    fn credentials_of_any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..100), text in "\\PC{0,60}") {
        store_credentials(&bytes);
        store_credentials(text.as_bytes());
    }
}
