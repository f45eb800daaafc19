//! A drive of the registry that was opened for a partition, of whatever kind.

use super::keys::KeyRing;
use super::{DriveEntry, DriveKind};
use afs_bucket::BucketDrive;
use afs_drive::{Drive, DriveError, Usage};
use afs_env::EnvRef;
use afs_remote::RemoteDrive;
use afs_wire::ids::PartitionId;
use std::sync::Arc;

/// An open drive. A clone is the same, so that its connections are shared.
#[derive(Clone)]
pub(super) enum Opened {
    Remote(RemoteDrive),
    Bucket(BucketDrive),
}

impl Opened {
    /// Opens the drive for a partition. Nothing is connected yet.
    ///
    /// # Errors
    /// A setting that makes no sense, or a drive that is not joined yet.
    pub(super) fn open(
        entry: &DriveEntry,
        (env, keys): (&EnvRef, &KeyRing),
        partition: PartitionId,
        is_used: bool,
    ) -> Result<Self, String> {
        match &entry.kind {
            DriveKind::Remote(settings) => {
                let options = settings.options(&entry.name, partition, keys.of(entry.id, settings)?)?;
                Ok(Self::Remote(RemoteDrive::new(env.clone(), options)))
            }
            DriveKind::Bucket(settings) if !settings.joined => Err("it is not joined yet".to_owned()),
            DriveKind::Bucket(settings) => {
                let opened = settings.open(env, &entry.name, partition, is_used);
                opened.map(Self::Bucket).map_err(|error| error.to_string())
            }
        }
    }

    /// The drive for a store of volumes.
    pub(super) fn drive(&self) -> Arc<dyn Drive> {
        match self {
            Self::Remote(drive) => Arc::new(drive.clone()),
            Self::Bucket(drive) => Arc::new(drive.clone()),
        }
    }

    /// Asks the drive how it is. A bucket has no bound, so that no space is told.
    pub(super) async fn look(&self) -> Result<Option<Usage>, DriveError> {
        match self {
            Self::Remote(drive) => drive.status().await.map(|status| Some(status.usage)),
            Self::Bucket(drive) => drive.look().await.map(|()| None),
        }
    }
}
