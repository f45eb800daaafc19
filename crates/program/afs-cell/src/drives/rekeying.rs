//! Keys of drives on other hosts that are exchanged: at the owner's request, and when they are old.

use super::attached::Inner;
use super::{DriveAnswer, DriveEntry, DriveKind, DrivesError, RemoteSettings};
use afs_env::{EnvExt, EnvRef};
use afs_wire::ids::PartitionId;
use std::sync::Weak;
use std::time::Duration;

/// From one look at the ages of the keys to the next.
const EVERY: Duration = Duration::from_secs(3600);

/// Gives the drives of a host other keys when theirs are `age` old, if that is a time, and completes what was interrupted.
pub(super) async fn keep_new(env: EnvRef, drives: Weak<Inner>, age: Option<Duration>) {
    loop {
        let Some(inner) = drives.upgrade() else { return };
        for name in inner.due(age).await {
            if let Err(why) = inner.rekey(&name).await {
                tracing::warn!(drive = name, %why, "the key of a drive is not changed yet");
            }
        }
        drop(inner);
        env.sleep(EVERY).await;
    }
}

impl Inner {
    /// Gives a drive another key. The registry has it before it is sent, and both until it is known that the drive has it: whatever
    /// is interrupted, by a crash of either side too, is completed by another attempt, and meanwhile the drive tells which it has.
    pub(super) async fn rekey(&self, name: &str) -> Result<DriveAnswer, DrivesError> {
        let (entry, settings) = self.prepare_key(name).await?;
        let no_key = |why: String| DrivesError::Store(format!("drive {name}: {why}"));
        let next = settings.next_key().map_err(no_key)?;
        let keys = self.keys.of(entry.id, &settings).map_err(no_key)?;
        let options = settings.options(name, PartitionId(0), keys).map_err(no_key)?;
        afs_remote::rekey(&self.env, &options).await?;
        if let Some(next) = next {
            self.key_given(entry.id, next.epoch().0).await?;
        }
        Ok(DriveAnswer::Done)
    }

    /// Has the next key of a drive in the registry.
    async fn prepare_key(&self, name: &str) -> Result<(DriveEntry, RemoteSettings), DrivesError> {
        let _turn = self.turn.lock().await;
        let no_key = |why| DrivesError::NoKey(name.to_owned(), why);
        let mut registry = self.registry.lock().clone();
        let entry = registry.find(name)?.clone();
        let DriveKind::Remote(mut settings) = entry.kind.clone() else {
            return Err(no_key("it is a bucket, whose credentials are in its file"));
        };
        if entry.lost {
            return Err(no_key("it was given up as lost"));
        }
        if settings.drive.is_empty() {
            return Err(no_key("it is not joined yet"));
        }
        settings.prepare_next(&*self.env);
        registry.set_kind(entry.id, DriveKind::Remote(settings.clone()));
        self.keep(registry)?;
        Ok((entry, settings))
    }

    /// The drive has the key of this epoch; the earlier one is forgotten.
    async fn key_given(&self, id: u32, epoch: u32) -> Result<(), DrivesError> {
        let _turn = self.turn.lock().await;
        let mut registry = self.registry.lock().clone();
        let entry = registry.drives().iter().find(|entry| entry.id == id);
        let Some(DriveKind::Remote(mut settings)) = entry.map(|entry| entry.kind.clone()) else {
            // It was removed meanwhile.
            return Ok(());
        };
        settings.take_next(epoch, self.env.wall().secs);
        registry.set_kind(id, DriveKind::Remote(settings));
        self.keep(registry)
    }

    /// The drives whose key is so old, or that are being given another one. Keys of unknown age begin to age.
    async fn due(&self, age: Option<Duration>) -> Vec<String> {
        let _turn = self.turn.lock().await;
        let (mut registry, now) = (self.registry.lock().clone(), self.env.wall().secs);
        let (mut due, mut is_new) = (Vec::new(), false);
        for entry in &mut registry.drives {
            let DriveKind::Remote(settings) = &mut entry.kind else { continue };
            if entry.lost || settings.drive.is_empty() {
                continue;
            }
            is_new |= settings.since.is_none();
            let since = *settings.since.get_or_insert(now);
            let is_old = age.is_some_and(|age| now.saturating_sub(since) >= age.as_secs());
            if is_old || settings.is_changing() {
                due.push(entry.name.clone());
            }
        }
        if is_new && let Err(why) = self.keep(registry) {
            tracing::error!(%why, "the age of the keys of drives is not kept");
        }
        due
    }
}
