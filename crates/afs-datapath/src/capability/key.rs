//! The key of a drive: it seals capabilities and checks them.

use std::fmt;

use afs_env::{Env, EnvExt, UnixTime};
use afs_wire::xdr::Encode;
use zeroize::Zeroizing;

use super::proof::mac;
use super::{Capability, DriveId, HolderId, KeyEpoch, Nonces, Proof, Refusal, Secret};

/// The key that a drive shares with the file server that seals its capabilities. Wiped when dropped, never shown.
pub struct DriveKey {
    drive: DriveId,
    epoch: KeyEpoch,
    key: Zeroizing<[u8; 32]>,
}

impl DriveKey {
    /// A random key.
    #[must_use]
    pub fn generate(env: &dyn Env, drive: DriveId, epoch: KeyEpoch) -> Self {
        Self::new(drive, epoch, env.random_bytes())
    }

    /// A key of these bytes, which nobody else may know.
    #[must_use]
    pub fn new(drive: DriveId, epoch: KeyEpoch, key: [u8; 32]) -> Self {
        Self { drive, epoch, key: Zeroizing::new(key) }
    }

    /// The drive to which it belongs.
    #[must_use]
    pub const fn drive(&self) -> DriveId {
        self.drive
    }

    /// Its number.
    #[must_use]
    pub const fn epoch(&self) -> KeyEpoch {
        self.epoch
    }

    /// The secret of a capability.
    ///
    /// Seals whatever it is given. The caller takes `drive` and `epoch` from this key, and `generation` from
    /// [`Revocations::generation`](super::Revocations::generation) *before* it looks at the rights.
    #[must_use]
    pub fn seal(&self, capability: &Capability) -> Secret {
        Secret::new(mac(&self.key, &[SEAL, &capability.to_bytes()]))
    }

    /// Whether a capability that was presented on a connection is this drive's, is of this key, was presented by who has its
    /// secret, and is not expired. Whether it was revoked, and what it permits, is to be checked at each access.
    ///
    /// # Errors
    /// [`Refusal::OtherDrive`], [`Refusal::OtherEpoch`], [`Refusal::Forged`], [`Refusal::Expired`]; the first of them that holds.
    pub fn check(
        &self,
        capability: &Capability,
        nonces: &Nonces,
        proof: &Proof,
        now: UnixTime,
    ) -> Result<(), Refusal> {
        if capability.drive != self.drive {
            return Err(Refusal::OtherDrive);
        }
        if capability.epoch != self.epoch {
            return Err(Refusal::OtherEpoch);
        }
        if !Proof::new(capability, &self.seal(capability), nonces).equals(proof) {
            return Err(Refusal::Forged);
        }
        if capability.expires <= now.secs {
            return Err(Refusal::Expired);
        }
        Ok(())
    }

    /// The holder that stands for a client's host and identity: the same for the same two, under this key.
    #[must_use]
    pub fn holder(&self, host: &[u8], identity: &[u8]) -> HolderId {
        let host_len = (host.len() as u64).to_be_bytes();
        let digest = mac(&self.key, &[HOLDER, &host_len, host, identity]);
        HolderId(digest.iter().take(16).fold(0, |id, byte| id << 8 | u128::from(*byte)))
    }
}

impl fmt::Debug for DriveKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriveKey")
            .field("drive", &self.drive)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

const SEAL: &[u8; 16] = b"afs-data-seal--1";
const HOLDER: &[u8; 16] = b"afs-data-holder1";
