//! Operations of programs with files whose bytes are at drives: in one row, in many small files, behind the beginning, for a long time.

use std::time::Duration;

use afs_rpc::EnvExt;
use afs_sim::SimRng;
use afs_venus::{OpenFlags, Result};
use afs_wire::fs::COMMIT_SLOT_LEN;

use super::scene::{FILES, PLACED, SPARSE_AT};
use crate::common::{Client, pattern};

/// Files that are written. The disks of simulated drives are in memory: what has holes is not among them.
const NAMES: [&str; 4] = ["large", "small", "proj/file", "placed"];
/// Longer than the capability of a layout lasts, and not so long that the drive's connection is closed.
const BETWEEN: (u64, u64) = (46, 64);
/// Number of kinds of operations.
const KINDS: u64 = 4;

/// An operation. Its outcome is the liar's to choose.
pub async fn operation(client: &Client, rng: &mut SimRng) {
    match rng.between(0, KINDS - 1) {
        0 => drop(store(client, rng).await),
        1 => drop(many(client, rng).await),
        2 => drop(for_long(client, rng).await),
        _ => drop(read_anew(client, "sparse", SPARSE_AT).await),
    }
}

/// A file anew, or a range of it.
async fn store(client: &Client, rng: &mut SimRng) -> Result<()> {
    let name = format!("bad.cell/{}", rng.pick(&NAMES).unwrap());
    let data = pattern(*rng.pick(&[PLACED, 100_000]).unwrap(), rng.between(0, 9));
    if rng.chance(500_000) {
        return client.put(&name, &data).await;
    }
    let handle = client.open(&name, OpenFlags::READ_WRITE).await?;
    let at = *rng.pick(&[0, 50_000, COMMIT_SLOT_LEN - 50_000]).unwrap();
    drop(client.venus.write(handle, at, data.into()).await);
    drop(client.venus.fsync(handle).await);
    client.venus.release(handle).await
}

/// Files of one directory, in any order.
async fn many(client: &Client, rng: &mut SimRng) -> Result<()> {
    let first = rng.between(0, FILES - 1);
    for number in 0..FILES {
        let number = (first + number) % FILES;
        drop(read_anew(client, &format!("many/{number}"), 0).await);
    }
    Ok(())
}

/// One file again and again.
async fn for_long(client: &Client, rng: &mut SimRng) -> Result<()> {
    let name = *rng.pick(&["large", "proj/file", "many/1"]).unwrap();
    for _ in 0..3 {
        drop(read_anew(client, name, 0).await);
        client.env.sleep(Duration::from_secs(rng.between(BETWEEN.0, BETWEEN.1))).await;
    }
    read_anew(client, name, 0).await
}

/// Of which nothing is cached.
async fn read_anew(client: &Client, name: &str, at: u64) -> Result<()> {
    let node = client.find(&format!("bad.cell/{name}")).await?.node;
    client.venus.set_property(node, b"afs.flush", b"file").await?;
    let handle = client.venus.open(node, OpenFlags::READ).await?.handle;
    drop(client.venus.read(handle, at, 1 << 16).await);
    client.venus.release(handle).await
}
