//! Stores of a server machine on its simulated disk.

use std::sync::Arc;

use afs_drive::SegmentDrive;
use afs_kv::Kv;
use afs_rpc::EnvRef;
use afs_sim::disk::SimDisk;
use afs_volume::VolumeStore;
use afs_wire::ids::PartitionId;

use crate::StartError;

/// Sizes of the stores of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Bytes of the log of an index. Default 64 KiB, so that checkpoints fall into every run.
    pub log_bytes: u64,
    /// Bytes of an index that are kept in memory. Default 1 MiB.
    pub index_cache: usize,
    /// Bytes of a segment of a drive. Default 1 MiB.
    pub segment_bytes: u64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { log_bytes: 64 << 10, index_cache: 1 << 20, segment_bytes: 1 << 20 }
    }
}

/// Opens a key-value store on a disk.
pub(crate) fn index(
    env: &EnvRef,
    disk: &SimDisk,
    name: &str,
    tables: &[&str],
    sizes: Sizes,
) -> Result<Kv, StartError> {
    let Sizes { log_bytes, index_cache: cache_bytes, .. } = sizes;
    let config = afs_kv::Config { log_bytes, cache_bytes, ..afs_kv::Config::default() };
    Ok(Kv::open(Arc::new(disk.medium(name)), tables, env.clone(), config)?)
}

/// Opens the volumes of a partition, and starts the background work on them.
pub(crate) async fn volumes(
    env: &EnvRef,
    disk: &SimDisk,
    partition: PartitionId,
    rows: Kv,
    sizes: Sizes,
) -> Result<VolumeStore, StartError> {
    let segments = disk.segments(&format!("drive{}", partition.0));
    let drive = Arc::new(SegmentDrive::open(segments, env.clone(), sizes.segment_bytes)?);
    let store = VolumeStore::open(rows, drive, env.clone(), afs_volume::Config::default()).await?;
    env.spawn(Box::pin(store.clone().run_background()));
    let sweeping = store.clone();
    env.spawn(Box::pin(async move {
        // An error here is a disk that has failed, which the next change to the store says too.
        let _ = sweeping.sweep().await;
    }));
    Ok(store)
}
