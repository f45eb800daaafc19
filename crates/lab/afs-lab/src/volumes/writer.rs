//! Writer that stores in a volume again and again while it is moved: asks the other server when one has it no more.

use super::cell::{OwnCell, Server};
use crate::error::LabError;
use crate::load::{LoadError, Target, put};
use afs_rpc::EnvExt;
use afs_wire::ids::{Fid, VolumeId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bytes of a store.
const STORE_BYTES: u64 = 16_384;
/// Most attempts at a store: the servers refuse it while the volume is held.
const TRIES: u32 = 10_000;
/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(1);

/// What a writer did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Written {
    /// Stores, all of which succeeded in the end.
    pub(super) stores: u32,
    /// The longest that one took.
    pub(super) longest: Duration,
}

/// Stores in a file again and again while `work` runs; at least once more after it.
pub(super) fn beside<T>(
    cell: &OwnCell,
    volume: VolumeId,
    file: Fid,
    work: impl FnOnce() -> Result<T, LabError>,
) -> Result<(T, Written), LabError> {
    let targets = [cell.target(Server::First, volume)?, cell.target(Server::Second, volume)?];
    let is_over = AtomicBool::new(false);
    afs_net::threads::room("lab", 1).map_err(LabError::Threads)?;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| cell.block_on(write(&targets, file, &is_over)));
        let done = work();
        is_over.store(true, Ordering::Release);
        let written = writer.join().map_err(|_| LabError::Lost)?;
        Ok((done?, written.map_err(LabError::Calls)?))
    })
}

async fn write(targets: &[Target; 2], file: Fid, is_over: &AtomicBool) -> Result<Written, LoadError> {
    let (mut written, mut at) = (Written::default(), 0);
    loop {
        let was_over = is_over.load(Ordering::Acquire);
        let begun = Instant::now();
        store(targets, &mut at, file).await?;
        written.stores += 1;
        written.longest = written.longest.max(begun.elapsed());
        if was_over {
            return Ok(written);
        }
    }
}

/// A store at the server that had the volume last, or at the other one.
async fn store(targets: &[Target; 2], at: &mut usize, fid: Fid) -> Result<(), LoadError> {
    for _ in 1..TRIES {
        match put(&targets[*at], fid, STORE_BYTES).await {
            Ok(_) => return Ok(()),
            Err(LoadError::Call { source, .. }) if source.abort_code().is_some() => {
                *at = 1 - *at;
                targets[*at].env.sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    }
    put(&targets[*at], fid, STORE_BYTES).await.map(drop)
}
