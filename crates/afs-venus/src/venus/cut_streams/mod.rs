//! Transfers by a byte stream beside the calls, cut at every byte.

pub(super) mod kit;
pub(super) mod server;
mod streams;

use std::ops::Range;

use kit::{Kit, LENGTH, pattern};
use streams::OrCalls;

use crate::api::OpenFlags;

/// Length of the reply to a fetch of the file: a count, the bytes, a version.
const FETCHED: usize = 8 + LENGTH as usize + 8;

#[test]
fn a_cut_fetch_leaves_nothing_cached_and_the_next_one_succeeds() {
    let kit = Kit::new(1, |streams| streams);
    for after in 0..FETCHED {
        kit.change(after as u64 + 1);
        // For writing, since an open for reading would fetch at once.
        let handle = kit.open(OpenFlags::WRITE).unwrap();
        kit.cut(kit.server, kit.client, after, after % 50 == 7);
        kit.read(handle).unwrap_err();
        assert!(kit.data().content().present.is_empty(), "after {after} bytes");
        assert_eq!(kit.read(handle).unwrap(), pattern(after as u64 + 1), "after {after} bytes");
        kit.release(handle);
    }
}

/// Length of a store of the whole file: a letter, three numbers, two numbers for each piece, and its bytes.
const STORED: usize = 1 + 24 + 16 + LENGTH as usize;

#[test]
fn a_cut_store_leaves_all_dirty_and_the_next_one_succeeds() {
    let kit = Kit::new(2, |streams| streams);
    for after in 0..STORED {
        let handle = kit.open(OpenFlags::READ_WRITE).unwrap();
        let before = kit.at_server();
        kit.write(handle, 0, pattern(after as u64 + 1));
        kit.cut(kit.client, kit.server, after, after % 50 == 7);
        kit.flush(handle).unwrap_err();
        assert!(kit.data().content().is_dirty(), "after {after} bytes");
        assert_eq!(kit.at_server(), before, "after {after} bytes");
        kit.flush(handle).unwrap();
        assert!(!kit.data().content().is_dirty(), "after {after} bytes");
        let (bytes, version) = kit.at_server();
        assert!(bytes == pattern(after as u64 + 1) && version > before.1, "after {after} bytes");
        kit.release(handle);
    }
}

/// Two pieces for an expected version: a letter, three numbers, and of each piece two numbers and its bytes.
const RANGES: [Range<u64>; 2] = [10..60, 200..290];
const RANGES_STORED: usize = 1 + 24 + 16 + 50 + 16 + 90;

#[test]
fn cut_ranges_are_not_stored_and_stay_dirty() {
    let kit = Kit::new(3, |streams| streams);
    for after in 0..RANGES_STORED {
        kit.change(after as u64);
        // Not fetched, so that the ranges are not joined with the bytes between them.
        let handle = kit.open(OpenFlags::WRITE).unwrap();
        let (mut wanted, before) = kit.at_server();
        for range in RANGES {
            let bytes = pattern(after as u64 + 1)[range.start as usize..range.end as usize].to_vec();
            wanted[range.start as usize..range.end as usize].copy_from_slice(&bytes);
            kit.write(handle, range.start, bytes);
        }
        kit.cut(kit.client, kit.server, after, false);
        kit.flush(handle).unwrap_err();
        assert_eq!(kit.at_server().1, before, "after {after} bytes");
        let unsaved: Vec<_> = kit.data().content().dirty.iter().collect();
        assert_eq!(unsaved, RANGES, "after {after} bytes");
        kit.flush(handle).unwrap();
        assert_eq!(kit.at_server(), (wanted, before + 1), "after {after} bytes");
        kit.release(handle);
    }
}

/// The store was made, and its reply is lost.
#[test]
fn a_store_whose_reply_is_cut_leaves_all_dirty_and_the_next_one_succeeds() {
    let kit = Kit::new(4, |streams| streams);
    for after in 1..8 {
        let handle = kit.open(OpenFlags::READ_WRITE).unwrap();
        kit.write(handle, 0, pattern(after as u64 + 1));
        kit.cut(kit.server, kit.client, after, after % 2 == 1);
        kit.flush(handle).unwrap_err();
        assert!(kit.data().content().is_dirty(), "after {after} bytes");
        assert_eq!(kit.at_server().0, pattern(after as u64 + 1), "after {after} bytes");
        kit.flush(handle).unwrap();
        assert!(!kit.data().content().is_dirty(), "after {after} bytes");
        assert_eq!(kit.at_server().0, pattern(after as u64 + 1), "after {after} bytes");
        kit.release(handle);
    }
}

#[test]
fn a_transfer_cut_on_one_route_is_completed_on_another() {
    let kit = Kit::new(5, OrCalls);
    for after in 0..FETCHED {
        let seed = after as u64;
        kit.change(2 * seed);
        let handle = kit.open(OpenFlags::WRITE).unwrap();
        kit.cut(kit.server, kit.client, after, after % 50 == 7);
        assert_eq!(kit.read(handle).unwrap(), pattern(2 * seed), "after {after} bytes");
        kit.write(handle, 0, pattern(2 * seed + 1));
        kit.cut(kit.client, kit.server, after, after % 50 == 8);
        kit.flush(handle).unwrap();
        assert_eq!(kit.at_server().0, pattern(2 * seed + 1), "after {after} bytes");
        kit.release(handle);
    }
}
