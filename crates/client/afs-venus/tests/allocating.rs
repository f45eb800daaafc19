//! `fallocate` without sufficient space, and on read-only volumes.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

use crate::common;

use std::sync::{Arc, Mutex};

use afs_venus::{Allocate, HandleId, OpenFlags};
use afs_wire::error::AbortCode;
use afs_wire::fs::VolumeStatus;
use afs_wire::ids::{UnixSeconds, VolumeId};
use afs_wire::vl::SiteFlags;
use afs_wire::vol::Snapshot;
use afs_wire::xdr::ByteString;
use bytes::Bytes;
use common::Client;
use common::fakes::{Fakes, Image, RO, RW};

const KIB: u64 = 1 << 10;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EBADF: i32 = 9;
const EDQUOT: i32 = 122;

/// A volume with a file of 8 KiB.
fn cell(seed: u64) -> Fakes {
    let cell = Fakes::new(seed, 2, 1);
    let image = Arc::new(Mutex::new(Image::new(100).with("file", &[7; 8192])));
    cell.servers[0].host(RW, &image, true);
    cell.servers[1].host(RO, &image, false);
    cell.locate(&[(0, SiteFlags::RW_VOLUME)]);
    cell
}

/// A volume status, in KiB; a quota of 0 is none, a partition of 0 is unknown.
fn space(quota: u32, used: u32, partition: u32, free: u32) -> VolumeStatus {
    VolumeStatus {
        id: RW,
        parent: RW,
        online: true,
        in_service: true,
        blessed: true,
        needs_salvage: false,
        writable: true,
        quota_min: 0,
        quota_max: quota,
        blocks_used: used,
        partition_blocks: partition,
        partition_blocks_free: free,
    }
}

async fn allocate(client: &Client, handle: HandleId, how: Allocate, len: u64) -> Result<(), i32> {
    client.venus.allocate(handle, how, 0, len).await.map_err(|error| error.errno())
}

/// Volume status, KiB to allocate from the beginning, and the expected result.
type Row = (VolumeStatus, u64, Result<(), i32>);

#[test]
fn an_allocation_beyond_quota_or_partition_is_refused() {
    let most = i32::MAX as u32;
    let table: [Row; 13] = [
        // The 8 KiB that exist need no space.
        (space(0, 500, 1000, 92), 100, Ok(())),
        (space(0, 500, 1000, 91), 100, Err(ENOSPC)),
        (space(0, 500, 1000, 0), 8, Ok(())),
        (space(0, 500, 1000, 0), 9, Err(ENOSPC)),
        (space(592, 500, 1000, 500), 100, Ok(())),
        (space(591, 500, 1000, 500), 100, Err(EDQUOT)),
        // The quota is larger than the partition, or is exceeded already.
        (space(9000, 500, 1000, 91), 100, Err(ENOSPC)),
        (space(400, 500, 1000, 500), 9, Err(EDQUOT)),
        (space(400, 500, 1000, 500), 8, Ok(())),
        // Space of the partition unknown: the store reports errors.
        (space(0, 500, 0, 0), 1 << 20, Ok(())),
        (space(591, 500, 0, 0), 100, Err(EDQUOT)),
        // The largest figure stands for all larger ones.
        (space(0, 0, most, most), 1 << 32, Ok(())),
        (space(0, 0, most, most - 1), 1 << 32, Err(ENOSPC)),
    ];
    for (reported, kib, outcome) in table {
        let cell = cell(1);
        cell.servers[0].set_space(Some(reported));
        let a = cell.client(1);
        let one = a.clone();
        cell.on(&a, async move {
            let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
            one.read_all(handle).await.unwrap();
            let answer = allocate(&one, handle, Allocate::Extend, kib * KIB).await;
            assert_eq!(answer, outcome, "{kib} KiB of {reported:?}");
            let length = if outcome.is_ok() { kib.max(8) * KIB } else { 8 * KIB };
            assert_eq!(one.find("file").await.unwrap().attr.size, length, "{kib} KiB of {reported:?}");
            // Zeros take no space.
            let zeros = Allocate::Zero { keep_length: false };
            assert_eq!(allocate(&one, handle, zeros, 1 << 40).await, Ok(()));
        });
    }
}

/// If the space is unknown, the store reports errors.
#[test]
fn an_allocation_succeeds_if_the_server_does_not_report_its_space() {
    let cell = cell(2);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        assert_eq!(allocate(&one, handle, Allocate::Extend, 1 << 40).await, Ok(()));
    });
    assert_eq!(cell.servers[0].calls("GetVolumeStatus"), 1);
}

/// No space is reserved: if it is gone at close, the close fails and the file is unchanged.
#[test]
fn space_exhausted_at_close_is_reported_by_close() {
    let cell = cell(3);
    cell.servers[0].set_space(Some(space(0, 0, 1000, 1000)));
    let (a, b) = (cell.client(1), cell.client(2));
    let one = a.clone();
    let handle = cell.on(&a, async move {
        let handle = one.open("file", OpenFlags::READ_WRITE).await.unwrap();
        assert_eq!(allocate(&one, handle, Allocate::Extend, 100 * KIB).await, Ok(()));
        one.venus.write(handle, 50 * KIB, Bytes::from_static(b"late")).await.unwrap();
        handle
    });
    cell.servers[0].refuse(RW, Some(AbortCode::VDISKFULL));
    let one = a.clone();
    cell.on(&a, async move { assert_eq!(one.venus.flush(handle, 0).await.unwrap_err().errno(), ENOSPC) });
    cell.servers[0].refuse(RW, None);
    let two = b.clone();
    cell.on(&b, async move { assert_eq!(two.get("file").await.unwrap(), [7; 8192]) });
}

/// A file of a read-only volume or a snapshot cannot be opened for writing, and a handle open for reading allocates
/// nothing.
#[test]
fn no_space_is_allocated_in_read_only_files() {
    let cell = cell(4);
    let monday = Arc::new(Mutex::new(Image::new(50).with("file", &[7; 8192])));
    cell.servers[0].host(VolumeId(2000), &monday, false);
    let name = ByteString::new(b"monday".to_vec()).unwrap();
    let snapshot = Snapshot { name, volume: VolumeId(2000), created: UnixSeconds(2_000_100) };
    cell.servers[0].set_snapshots(Some(vec![snapshot]));
    cell.locate(&[(0, SiteFlags::RW_VOLUME), (1, SiteFlags::RO_VOLUME)]);
    let a = cell.client(1);
    let one = a.clone();
    cell.on(&a, async move {
        for path in ["file", ".snapshots/monday/file"] {
            for flags in [OpenFlags::WRITE, OpenFlags::READ_WRITE] {
                assert_eq!(one.open(path, flags).await.unwrap_err().errno(), EROFS, "{path}");
            }
            let handle = one.open(path, OpenFlags::READ).await.unwrap();
            for how in [
                Allocate::Extend,
                Allocate::Zero { keep_length: true },
                Allocate::Zero { keep_length: false },
            ] {
                assert_eq!(allocate(&one, handle, how, 100 * KIB).await, Err(EBADF), "{path} {how:?}");
            }
            assert_eq!(one.find(path).await.unwrap().attr.size, 8 * KIB);
            assert_eq!(one.get(path).await.unwrap(), [7; 8192], "{path}");
        }
    });
    for server in &cell.servers {
        assert_eq!((server.calls("StoreData"), server.calls("GetVolumeStatus")), (0, 0));
    }
}
