//! Keys of drives on other hosts: their text in files of secrets, and those that the open connections share.

use super::RemoteSettings;
use afs_remote::DriveKeys;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zeroize::{Zeroize, Zeroizing};

/// Epoch of the key with which a drive is joined.
pub(super) const FIRST_EPOCH: u32 = 1;

/// What a file says that names no epoch.
pub(super) const fn first_epoch() -> u32 {
    FIRST_EPOCH
}

/// Whether a file need not name the epoch.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(super) fn is_first_epoch(epoch: &u32) -> bool {
    *epoch == FIRST_EPOCH
}

/// A key in base64: shown by nobody, and wiped.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KeyText(String);

impl Drop for KeyText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for KeyText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyText(..)")
    }
}

impl KeyText {
    pub(super) fn of(key: &[u8; 32]) -> Self {
        Self(STANDARD.encode(key))
    }

    pub(super) fn bytes(&self) -> Option<Zeroizing<[u8; 32]>> {
        let bytes = Zeroizing::new(STANDARD.decode(&self.0).ok()?);
        bytes.as_slice().try_into().ok().map(Zeroizing::new)
    }
}

/// The keys of the drives of a registry, by the drive's id: the same for all partitions, so that they change together.
#[derive(Default)]
pub(super) struct KeyRing(Mutex<BTreeMap<u32, DriveKeys>>);

impl KeyRing {
    /// The keys of a drive.
    ///
    /// # Errors
    /// Its key is damaged, or it is not joined yet.
    pub(super) fn of(&self, id: u32, settings: &RemoteSettings) -> Result<DriveKeys, String> {
        let present = settings.key()?;
        let keys = self.0.lock().entry(id).or_insert_with(|| present.into()).clone();
        if let Some(next) = settings.next_key()? {
            keys.offer(next);
        }
        Ok(keys)
    }

    /// Forgets those of a drive that was removed.
    pub(super) fn remove(&self, id: u32) {
        self.0.lock().remove(&id);
    }
}
