//! What a drive of a server machine is on, and how a life of the machine gets it.

use std::sync::Arc;

use afs_bucket::{Admission, Bucket, BucketDrive, Config, OwnerId};
use afs_drive::{Drive, DriveId, FileSegments, MemorySegments, SegmentDrive, SegmentStore};
use afs_remote::{DirectDrive, RemoteDrive, RemoteOptions};
use afs_rpc::EnvRef;
use afs_server::Partitions;
use afs_sim::crash::{CrashDisk, CrashFolder, Rng};

use super::{DriveHost, PARTITION};
use crate::{SignedStore, StartError};

/// The owner of a server's bucket.
pub(super) const OWNER: OwnerId = OwnerId([7; 16]);
const SEGMENT_BYTES: u64 = 1 << 20;

/// What a drive is on.
pub(super) enum Medium {
    /// The program of a drive on a host of its own.
    Remote(RemoteOptions),
    /// The same on the machine of the server.
    Beside(RemoteOptions, Box<DriveHost>),
    /// An object store.
    Bucket(SignedStore),
    /// The product's files, on a disk whose images after power failures are drawn.
    Files(CrashDisk, Rng),
    /// Memory that is not lost.
    Memory(MemorySegments),
}

impl Medium {
    /// The power of the server's machine has failed, and come back.
    pub(super) fn lose_power(&mut self) {
        match self {
            Self::Beside(_, host) => host.start_again(),
            Self::Files(disk, rng) => *disk = disk.image(rng),
            Self::Remote(_) | Self::Bucket(_) | Self::Memory(_) => {}
        }
    }

    /// Makes the drive known to the life of a server, which sends clients there if they can go there.
    pub(super) fn attach(
        &self,
        id: DriveId,
        env: &EnvRef,
        partitions: &Partitions,
    ) -> Result<(), StartError> {
        let store = partitions.store(PARTITION).ok_or("the server has no first partition")?;
        match self {
            Self::Remote(options) | Self::Beside(options, _) => {
                store.add_drive(id, Arc::new(RemoteDrive::new(env.clone(), options.clone())))?;
                partitions.add_direct(PARTITION, id, DirectDrive::new(env.clone(), options.clone()));
            }
            Self::Bucket(objects) => {
                let (bucket, owner): (Arc<dyn Bucket>, _) =
                    (Arc::new(objects.clone()), Admission::Check(OWNER));
                let drive = BucketDrive::attached("bucket", bucket, owner, env.clone(), Config::default());
                store.add_drive(id, Arc::new(drive.clone()))?;
                partitions.add_addressed(PARTITION, id, Arc::new(drive));
            }
            Self::Files(disk, _) => {
                store.add_drive(id, opened(FileSegments::over(CrashFolder(disk.clone())), env)?)?;
            }
            Self::Memory(segments) => store.add_drive(id, opened(segments.clone(), env)?)?,
        }
        Ok(())
    }
}

fn opened(segments: impl SegmentStore, env: &EnvRef) -> Result<Arc<dyn Drive>, StartError> {
    Ok(Arc::new(SegmentDrive::open(segments, env.clone(), SEGMENT_BYTES)?))
}
