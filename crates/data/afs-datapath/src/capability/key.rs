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

    /// Its bytes, to be given to the drive.
    #[must_use]
    pub fn secret(&self) -> Secret {
        Secret::new(*self.key)
    }

    /// Its bytes, for MACs.
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.key
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::{Access, ByteRange, Generation, Group, Nonce};
    use afs_wire::ids::VolumeId;

    fn now(secs: u64) -> UnixTime {
        UnixTime { secs, nanos: 999_999_999 }
    }

    #[test]
    fn a_capability_is_good_before_its_expiry() {
        let key = DriveKey::new(DriveId(1), KeyEpoch(2), [3; 32]);
        let capability = Capability {
            drive: key.drive(),
            epoch: key.epoch(),
            group: Group::Volume(VolumeId(4)),
            access: Access::READ,
            range: ByteRange::ALL,
            expires: 1000,
            generation: Generation(0),
            holder: key.holder(b"host", b"identity"),
        };
        let nonces = Nonces { drive: Nonce([5; 32]), client: Nonce([6; 32]) };
        let proof = Proof::new(&capability, &key.seal(&capability), &nonces);
        assert_eq!(key.check(&capability, &nonces, &proof, now(999)), Ok(()));
        assert_eq!(key.check(&capability, &nonces, &proof, now(1000)), Err(Refusal::Expired));
    }

    #[test]
    fn holders_differ_by_host_by_identity_and_by_key() {
        let key = DriveKey::new(DriveId(1), KeyEpoch(2), [3; 32]);
        let other = DriveKey::new(DriveId(1), KeyEpoch(3), [4; 32]);
        let holder = key.holder(b"ab", b"c");
        assert_eq!(holder, key.holder(b"ab", b"c"));
        assert!(
            ![key.holder(b"a", b"bc"), key.holder(b"ab", b"d"), other.holder(b"ab", b"c")].contains(&holder)
        );
    }

    #[test]
    fn keys_and_secrets_are_not_shown() {
        let key = DriveKey::new(DriveId(1), KeyEpoch(2), [0x77; 32]);
        let shown = format!("{key:?} {:?}", Secret::new([0x77; 32]));
        assert!(!shown.contains("77") && !shown.contains("119"), "{shown}");
    }
}
