//! Settings of a drive in a bucket, and how they become a drive for each partition.

use super::DrivesError;
use super::opened::Opened;
use afs_bucket::{Admission, BucketDrive, Config, OwnerId};
use afs_drive::DriveError;
use afs_env::EnvRef;
use afs_s3::{ConfigError, S3Bucket, S3Config};
use afs_wire::ids::PartitionId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a bucket is, and as whom it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketPlace {
    /// `s3://BUCKET/PREFIX`. Each partition has a drive of its own below the prefix.
    pub bucket: String,
    /// `https://HOST[:PORT]` of the store.
    pub endpoint: String,
    /// The region, which signatures name.
    pub region: String,
    /// File of secrets with the credentials, as an absolute path: the file server reads it for every request.
    pub credentials: PathBuf,
    /// Certificates (PEM) of the authorities that the store's certificate is verified by; those of the system without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
    /// Whether requests may go to another machine without encryption.
    #[serde(default)]
    pub allow_clear: bool,
}

/// A drive in a bucket.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BucketSettings {
    /// Where it is.
    #[serde(flatten)]
    pub place: BucketPlace,
    /// Names this drive in the bucket: 128 random bits, in hexadecimal digits.
    pub owner: String,
    /// Whether the store has shown that it can be used.
    pub joined: bool,
}

impl fmt::Display for BucketPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.bucket, self.endpoint)
    }
}

impl BucketPlace {
    pub(super) fn config(&self, partition: PartitionId) -> Result<S3Config, ConfigError> {
        let prefix = format!("{}/store-{}", self.bucket.trim_end_matches('/'), partition.0);
        Ok(S3Config {
            // What the owner wrote is named in the error, and not what was made of it.
            address: self.bucket.parse::<afs_s3::BucketAddress>().and_then(|_| prefix.parse())?,
            endpoint: self.endpoint.parse()?,
            region: self.region.clone(),
            credentials: self.credentials.clone(),
            authority: self.authority.clone(),
            allow_clear: self.allow_clear,
        })
    }

    /// # Errors
    /// What is wrong with the settings, or the credentials cannot be read now.
    pub(super) fn check(&self, partition: PartitionId) -> Result<(), DrivesError> {
        Ok(S3Bucket::open(&self.config(partition)?).map(drop)?)
    }

    /// Why the bucket cannot be a drive.
    pub(super) fn refused(&self, error: &DriveError) -> DrivesError {
        let why = match error {
            DriveError::Io(error) => error.to_string(),
            DriveError::Away { why, .. } => why.to_string(),
            other => other.to_string(),
        };
        DrivesError::Bucket { place: self.to_string(), why }
    }
}

impl BucketSettings {
    /// Settings of a new drive.
    pub(super) fn new(place: BucketPlace, owner: OwnerId) -> Self {
        Self { place, owner: owner.to_string(), joined: false }
    }

    /// The drive of a partition, to which no request is made yet. `is_used` says whether the partition has a chunk there.
    ///
    /// # Errors
    /// What is wrong with the settings.
    pub(super) fn open(
        &self,
        env: &EnvRef,
        name: &str,
        partition: PartitionId,
        is_used: bool,
    ) -> Result<BucketDrive, DrivesError> {
        let owner = u128::from_str_radix(&self.owner, 16).ok().filter(|_| self.owner.len() == 32);
        let owner = owner.map(|owner| OwnerId(owner.to_be_bytes()));
        let owner = owner.ok_or_else(|| DrivesError::Store("its owner is damaged".to_owned()))?;
        let bucket = Arc::new(S3Bucket::attached(&self.place.config(partition)?)?);
        let admission = if is_used { Admission::Check(owner) } else { Admission::Make(owner) };
        Ok(BucketDrive::attached(name, bucket, admission, env.clone(), Config::default()))
    }

    /// Removes all of a partition's drive from the bucket.
    pub(super) async fn withdraw(
        &self,
        opened: Option<Opened>,
        env: &EnvRef,
        name: &str,
        partition: PartitionId,
    ) -> Result<(), String> {
        let drive = match opened {
            Some(Opened::Bucket(drive)) => drive,
            // One that could not be attached.
            _ => self.open(env, name, partition, false).map_err(|error| error.to_string())?,
        };
        drive.withdraw().await.map_err(|error| error.to_string())
    }
}
