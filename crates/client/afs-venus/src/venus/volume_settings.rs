//! Settings of a volume that users read and change as properties: its quota and its off-line message.

use std::sync::Arc;

use afs_wire::fs::{self, PathText, SetVolumeStatus};

use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::venus::Venus;

/// Longest off-line message, in bytes: a dump has no room for more (docs/protocol/dump.md, tag `O`).
const OFFLINE_MESSAGE_MAX: usize = 127;

impl Venus {
    /// Status of a volume as its server tells it.
    pub(super) async fn volume_status(&self, volume: &Arc<Volume>) -> Result<fs::GetVolumeStatusReply> {
        Ok(self.call(volume, fs::GetVolumeStatus { volume: volume.id }).await?.value)
    }

    /// Sets the quota of the volume of an object: decimal digits, in KiB.
    pub(super) async fn set_quota(&self, key: Key, value: &[u8]) -> Result<()> {
        let quota: u32 = text(value)?.parse().map_err(|_| invalid())?;
        if quota > i32::MAX as u32 {
            return Err(invalid());
        }
        let status = SetVolumeStatus { quota_min: None, quota_max: Some(quota) };
        self.set_volume_status(key, status, PathText::empty()).await
    }

    /// Sets the off-line message of the volume of an object. The call leaves the message as it is if the new one is
    /// empty, so an empty one is refused.
    pub(super) async fn set_offline_message(&self, key: Key, value: &[u8]) -> Result<()> {
        let message = text(value)?;
        if message.is_empty() || message.len() > OFFLINE_MESSAGE_MAX {
            return Err(invalid());
        }
        let message = PathText::new(message.as_bytes()).map_err(|_| invalid())?;
        self.set_volume_status(key, SetVolumeStatus::default(), message).await
    }

    async fn set_volume_status(
        &self,
        key: Key,
        status: SetVolumeStatus,
        offline_message: PathText,
    ) -> Result<()> {
        let volume = self.volume_of(key).await?;
        let (name, motd) = (fs::Name::empty(), PathText::empty());
        let request = fs::StoreVolumeStatus { volume: volume.id, status, name, offline_message, motd };
        self.call(&volume, request).await.map(drop)
    }
}

/// The value of a property as text, without the NUL that some tools send at its end.
fn text(value: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(value).map_err(|_| invalid())?;
    Ok(text.trim().trim_end_matches('\0'))
}

fn invalid() -> VenusError {
    VenusError::new(ErrorKind::Invalid, "SetVolumeStatus")
}
