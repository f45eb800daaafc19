//! How a drive on another host is reached: address, fingerprint of its TLS key, its id, the keys that it was given.

use super::keys::{FIRST_EPOCH, KeyText, first_epoch, is_first_epoch};
use afs_datapath::capability::{DriveId, DriveKey, KeyEpoch, StoreNumber};
use afs_datapath::session::{Fingerprint, Security};
use afs_env::{Env, EnvExt};
use afs_remote::{DriveKeys, RemoteOptions};
use afs_wire::ids::PartitionId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// How a drive on another host is reached.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemoteSettings {
    /// Where it listens.
    pub address: SocketAddr,
    /// SHA-256 of its TLS key, in hexadecimal digits.
    pub fingerprint: String,
    /// Its own 128-bit id, in hexadecimal digits; empty while it is not joined.
    pub drive: String,
    /// The key that this file server gave it, in base64.
    pub key: KeyText,
    /// Epoch of that key.
    #[serde(default = "first_epoch", skip_serializing_if = "is_first_epoch")]
    pub(super) epoch: u32,
    /// When it was given, in seconds since 1970. Not known at first of a drive that an older program has joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<u64>,
    /// The key of the next epoch: from before it is given until the drive is known to have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<KeyText>,
}

impl RemoteSettings {
    /// Those of a drive that is to be joined, at a time in seconds since 1970.
    pub(super) fn new(address: SocketAddr, fingerprint: String, key: KeyText, now: u64) -> Self {
        let (drive, epoch, since, next) = (String::new(), FIRST_EPOCH, Some(now), None);
        Self { address, fingerprint, drive, key, epoch, since, next }
    }

    /// Whether an older program would take the key for another one.
    pub(super) fn has_later_keys(&self) -> bool {
        self.epoch != FIRST_EPOCH || self.next.is_some()
    }

    /// Whether a key was begun to be given of which it is not known whether the drive has it.
    pub(super) fn is_changing(&self) -> bool {
        self.next.is_some()
    }

    /// Makes the key of the next epoch, unless there is one.
    pub(super) fn prepare_next(&mut self, env: &dyn Env) {
        self.next.get_or_insert_with(|| KeyText::of(&env.random_bytes()));
    }

    /// The drive has the key of this epoch.
    pub(super) fn take_next(&mut self, epoch: u32, now: u64) {
        if self.epoch.checked_add(1) != Some(epoch) {
            return;
        }
        if let Some(next) = self.next.take() {
            (self.key, self.epoch, self.since) = (next, epoch, Some(now));
        }
    }

    /// The key that the drive has, or had before the next one.
    pub(super) fn key(&self) -> Result<Arc<DriveKey>, String> {
        self.of_text(&self.key, KeyEpoch(self.epoch))
    }

    /// The key that it was or is to be given.
    pub(super) fn next_key(&self) -> Result<Option<Arc<DriveKey>>, String> {
        let next = self.next.as_ref().zip(KeyEpoch(self.epoch).next());
        next.map(|(text, epoch)| self.of_text(text, epoch)).transpose()
    }

    fn of_text(&self, text: &KeyText, epoch: KeyEpoch) -> Result<Arc<DriveKey>, String> {
        let key = text.bytes().ok_or("its key is damaged")?;
        let drive = u128::from_str_radix(&self.drive, 16).map_err(|_| "it is not joined yet")?;
        Ok(Arc::new(DriveKey::new(DriveId(drive), epoch, *key)))
    }

    /// How it is reached, and the store for a partition.
    pub(super) fn options(
        &self,
        name: &str,
        partition: PartitionId,
        keys: DriveKeys,
    ) -> Result<RemoteOptions, String> {
        let store = StoreNumber(partition.0.into());
        Ok(RemoteOptions::new(name, self.address, self.security()?, keys, store))
    }

    /// How its connection is protected.
    pub(super) fn security(&self) -> Result<Security, String> {
        let byte = |at: usize| u8::from_str_radix(self.fingerprint.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..32).map(|place| byte(2 * place)).collect();
        let bytes = bytes.filter(|_| self.fingerprint.len() == 64).and_then(|bytes| bytes.try_into().ok());
        bytes
            .map(|bytes| Security::Tls(Fingerprint(bytes)))
            .ok_or_else(|| "its fingerprint is damaged".to_owned())
    }
}
