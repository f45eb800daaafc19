//! Adding of drives: one on another host is joined by its key, a bucket has to show that it can be used.

use super::attached::Inner;
use super::keys::KeyText;
use super::{
    BucketPlace, BucketSettings, DriveAnswer, DriveEntry, DriveKind, DrivesError, JoinKey, Registry,
    RemoteSettings,
};
use afs_bucket::{BucketDrive, OwnerId};
use afs_datapath::capability::Secret;
use afs_datapath::session::Security;
use afs_env::EnvExt;
use std::net::SocketAddr;
use std::path::Path;

impl Inner {
    pub(super) async fn add(
        &self,
        name: &str,
        address: SocketAddr,
        key: &str,
    ) -> Result<DriveAnswer, DrivesError> {
        let join_key = JoinKey::parse(key)?;
        let mut registry = self.registry.lock().clone();
        let (entry, mut settings) = self.prepare(&mut registry, name, address, &join_key)?;
        // Before the drive gets the key: an attempt that is interrupted is made again with the same one.
        self.keep(registry.clone())?;
        let new = settings.key.bytes().ok_or_else(|| bad(&self.state, "a key is damaged"))?;
        let (security, new) = (Security::Tls(join_key.fingerprint), Secret::new(*new));
        let drive = afs_remote::join(&self.env, address, security, &join_key.secret, &new).await?;
        settings.drive = format!("{:032x}", drive.0);
        let entry = DriveEntry { kind: DriveKind::Remote(settings), ..entry };
        registry.set_kind(entry.id, entry.kind.clone());
        self.keep(registry)?;
        for (partition, store) in self.partitions.iter() {
            self.attach(&entry, partition, store).map_err(DrivesError::Store)?;
        }
        Ok(DriveAnswer::Done)
    }

    /// A new entry, or the one of an attempt that was interrupted.
    fn prepare(
        &self,
        registry: &mut Registry,
        name: &str,
        address: SocketAddr,
        key: &JoinKey,
    ) -> Result<(DriveEntry, RemoteSettings), DrivesError> {
        let fingerprint = key.fingerprint.to_string();
        let interrupted = registry.find(name).ok().and_then(|entry| match &entry.kind {
            DriveKind::Remote(settings)
                if settings.drive.is_empty() && settings.fingerprint == fingerprint =>
            {
                Some((entry.clone(), RemoteSettings { address, ..settings.clone() }))
            }
            DriveKind::Remote(_) | DriveKind::Bucket(_) => None,
        });
        if let Some(interrupted) = interrupted {
            return Ok(interrupted);
        }
        let key = KeyText::of(&self.env.random_bytes());
        let settings = RemoteSettings::new(address, fingerprint, key, self.env.wall().secs);
        let entry = registry.add(name, DriveKind::Remote(settings.clone()))?;
        Ok((entry, settings))
    }

    /// Takes a bucket as a drive. Nothing is kept of one that another file server has, or that does not answer.
    pub(super) async fn add_bucket(
        &self,
        name: &str,
        place: BucketPlace,
    ) -> Result<DriveAnswer, DrivesError> {
        let mut registry = self.registry.lock().clone();
        let (entry, mut settings) = self.prepare_bucket(&mut registry, name, &place)?;
        let drives = self.of_partitions(name, &settings)?;
        for drive in &drives {
            drive.look().await.map_err(|error| place.refused(&error))?;
        }
        // Before the first object is put: an attempt that is interrupted is made again as the same owner.
        self.keep(registry.clone())?;
        if let Err(error) = begin_all(&drives).await {
            if withdraw_all(&drives).await {
                registry.remove(entry.id);
                self.keep(registry)?;
            }
            return Err(place.refused(&error));
        }
        settings.joined = true;
        let entry = DriveEntry { kind: DriveKind::Bucket(settings), ..entry };
        registry.set_kind(entry.id, entry.kind.clone());
        self.keep(registry)?;
        for (partition, store) in self.partitions.iter() {
            self.attach(&entry, partition, store).map_err(DrivesError::Store)?;
        }
        Ok(DriveAnswer::Done)
    }

    /// A new entry, or the one of an attempt that was interrupted.
    fn prepare_bucket(
        &self,
        registry: &mut Registry,
        name: &str,
        place: &BucketPlace,
    ) -> Result<(DriveEntry, BucketSettings), DrivesError> {
        if let Ok(entry) = registry.find(name)
            && let DriveKind::Bucket(settings) = &entry.kind
            && !settings.joined
            && (&settings.place.bucket, &settings.place.endpoint) == (&place.bucket, &place.endpoint)
        {
            return Ok((entry.clone(), BucketSettings { place: place.clone(), ..settings.clone() }));
        }
        let settings = BucketSettings::new(place.clone(), OwnerId(self.env.random_bytes()));
        let entry = registry.add(name, DriveKind::Bucket(settings.clone()))?;
        Ok((entry, settings))
    }

    fn of_partitions(&self, name: &str, settings: &BucketSettings) -> Result<Vec<BucketDrive>, DrivesError> {
        let open = |partition| {
            settings.place.check(partition)?;
            settings.open(&self.env, name, partition, false)
        };
        self.partitions.iter().map(|(partition, _)| open(partition)).collect()
    }
}

async fn begin_all(drives: &[BucketDrive]) -> Result<(), afs_drive::DriveError> {
    for drive in drives {
        drive.begin_run().await?;
    }
    Ok(())
}

/// Whether nothing of the drives is left.
async fn withdraw_all(drives: &[BucketDrive]) -> bool {
    let mut all = true;
    for drive in drives {
        if let Err(why) = drive.withdraw().await {
            tracing::warn!(%why, "objects of a bucket that is not used remain");
            all = false;
        }
    }
    all
}

fn bad(state: &Path, why: &str) -> DrivesError {
    DrivesError::File { path: state.to_owned(), why: why.to_owned() }
}
