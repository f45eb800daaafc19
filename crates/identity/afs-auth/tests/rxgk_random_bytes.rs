//! Runs the fuzz target over random bytes and over plausible ones.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use afs_auth::fuzzing;
use proptest::prelude::*;

/// Words that are mostly small, as counts and lengths are.
fn words() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![6 => 0..40u32, 1 => any::<u32>(), 1 => Just(u32::MAX)];
    prop::collection::vec(word, 0..60)
        .prop_map(|words| words.into_iter().flat_map(u32::to_be_bytes).collect())
}

/// A callback offer with another client's fields.
fn offers() -> impl Strategy<Value = Vec<u8>> {
    let lens = (0..40usize, 0..40usize);
    (lens, 15..25i32, any::<bool>()).prop_map(|((token, key), enctype, cut)| {
        let opaque =
            |len: usize| [&(len as u32).to_be_bytes()[..], &vec![1; len.next_multiple_of(4)]].concat();
        let mut bytes =
            [&[0; 44][..], &opaque(token), &opaque(key), &enctype.to_be_bytes(), &[0; 44]].concat();
        bytes.truncate(bytes.len() - usize::from(cut));
        bytes
    })
}

proptest! {
    #[test]
    fn nothing_panics(place: u8, bytes in prop_oneof![words(), offers(), any::<Vec<u8>>()]) {
        fuzzing::rxgk(&[&[place], &bytes[..]].concat());
    }
}
