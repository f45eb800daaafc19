//! The server side of the data path: the file server as a drive, the capabilities that it gives out, and their
//! revocation (docs/protocol/data-path.md, docs/decisions/2026-11-23-data-path.md).
//!
//! A capability is decided as a call is, and revoked before the reply to the call that changes what it rests
//! on. The drive itself believes the capability, and beside it looks at what only a file server knows: mode and
//! directory of the file, the state of its volume, the groups of the holder, the requirements on connections.

mod audited;
mod holders;
mod layouts;
mod listening;
mod looking;
mod objects;
mod of_files;
mod offer;
mod reading;
mod stamps;
mod stream_pieces;
mod streams;
mod writing;

pub use listening::DataPathOptions;

use std::sync::Arc;

use afs_datapath::capability::{
    Access, ByteRange, Capability, DriveId, DriveKey, Group, KeyEpoch, Revocations,
};
use afs_datapath::session::{Drive, DriveLimits, Objects};
use afs_rpc::{EnvExt, EnvRef, Identity};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{CapabilityArguments, CapabilitySecret, DataPathReply, DriveCapability};
use afs_wire::ids::{Fid, VolumeId};
use afs_wire::vol::{StreamGrant, TransactionId};
use afs_wire::xdr::Encode;
use parking_lot::RwLock;

pub(crate) use afs_datapath::capability::HolderId;
pub(crate) use audited::AuditedReads;
pub(crate) use holders::{Holder, Holders};
pub(crate) use layouts::{Layouts, Telling};
pub(crate) use objects::FileObjects;
pub(crate) use stamps::{Stamp, Stamps};
pub(crate) use stream_pieces::{ComingDump, DumpPieces};
pub(crate) use streams::{Begun, OpenStream, Streams};

use crate::call_context::CallContext;
use crate::partitions::Partitions;
use of_files::CapabilitiesOfFiles;
use offer::DriveOffer;

/// How long a capability is valid, in seconds; shorter if the token of its holder expires before.
const LIFETIME: u64 = 300;

/// How long the capability of a stream of a volume is valid before the stream begins, in seconds. The call that
/// grants it waits less.
const STREAM_LIFETIME: u64 = 60;

/// Capabilities of a file server, and what revokes them. The key is another one in each process.
pub(crate) struct DataPath {
    drive: Arc<Drive>,
    holders: Holders,
    of_files: CapabilitiesOfFiles,
    stamps: Stamps,
    audited: AuditedReads,
    streams: Arc<Streams>,
    layouts: Layouts,
    offer: RwLock<Option<DriveOffer>>,
}

/// A capability that is prepared, before the rights are looked at that decide on it.
pub(crate) struct Grant {
    capability: Capability,
    seconds: u64,
}

impl DataPath {
    pub(crate) fn new(
        env: &EnvRef,
        objects: Arc<dyn Objects>,
        partitions: &Partitions,
        limits: DriveLimits,
    ) -> Self {
        let id = DriveId(u128::from_le_bytes(env.random_bytes()));
        let key = DriveKey::generate(&**env, id, KeyEpoch(1));
        DataPath {
            drive: Drive::new(key, Revocations::default(), objects, limits),
            holders: Holders::default(),
            of_files: CapabilitiesOfFiles::default(),
            stamps: Stamps::default(),
            audited: AuditedReads::default(),
            streams: Arc::default(),
            layouts: Layouts::new(env, partitions),
            offer: RwLock::default(),
        }
    }

    /// The drive.
    pub(crate) fn drive(&self) -> &Arc<Drive> {
        &self.drive
    }

    /// Where clients reach the drive; `None` while it does not listen.
    pub(crate) fn offered(&self) -> Option<DataPathReply> {
        self.offer.read().as_ref().map(|offer| offer.reply(self.drive.key().drive()))
    }

    /// Sets where clients reach the drive.
    fn set_offer(&self, offer: Option<DriveOffer>) {
        *self.offer.write() = offer;
    }

    /// Whether the drive may be used without TLS.
    pub(crate) fn may_be_clear(&self) -> bool {
        self.offer.read().as_ref().is_some_and(|offer| offer.clear)
    }

    pub(crate) fn holders(&self) -> &Holders {
        &self.holders
    }

    pub(crate) fn audited(&self) -> &AuditedReads {
        &self.audited
    }

    pub(crate) fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    pub(crate) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// Grants a stream of a transaction's volume to a caller, whose right to it was decided before. `None` while
    /// the drive does not listen, or while too many streams wait.
    pub(crate) fn grant_stream(
        &self,
        env: &EnvRef,
        (volume, transaction): (VolumeId, TransactionId),
        access: Access,
    ) -> Option<(StreamGrant, OpenStream)> {
        let drive = self.offered()?;
        let name = self.streams.name(volume, transaction);
        let group = Group::Stream(name);
        let capability = Capability {
            drive: self.drive.key().drive(),
            epoch: self.drive.key().epoch(),
            group,
            access,
            range: ByteRange::ALL,
            expires: env.wall().secs + STREAM_LIFETIME,
            generation: self.drive.revocations.generation(group),
            holder: HolderId(u128::from_le_bytes(env.random_bytes())),
        };
        let open = self.streams.open(name, capability)?;
        let capability = self.seal(Grant { capability, seconds: STREAM_LIFETIME }, access).ok()?;
        Some((StreamGrant { drive, capability }, open))
    }

    /// Prepares a capability for a caller: from here on a change of rights revokes it. `None` for a caller
    /// whose token has expired.
    pub(crate) fn prepare(
        &self,
        env: &EnvRef,
        context: &CallContext,
        group: Group,
        directory: Fid,
    ) -> Option<Grant> {
        let now = env.wall().secs;
        let seconds = Some(lifetime(&context.identity, now)).filter(|seconds| *seconds > 0)?;
        let expires = now + seconds;
        if let Group::File(file) = group
            && self.of_files.add(file, directory, now, expires)
        {
            self.drive.revocations.revoke_all();
        }
        let holder = self.holders.enter(context, u128::from_le_bytes(env.random_bytes()));
        let capability = Capability {
            drive: self.drive.key().drive(),
            epoch: self.drive.key().epoch(),
            group,
            access: Access::default(),
            range: ByteRange::ALL,
            expires,
            generation: self.drive.revocations.generation(group),
            holder: holder.id,
        };
        Some(Grant { capability, seconds })
    }

    /// Completes a capability, after the look at the rights.
    pub(crate) fn seal(&self, grant: Grant, access: Access) -> Result<DriveCapability, AbortCode> {
        let capability = Capability { access, ..grant.capability };
        let arguments =
            CapabilityArguments::new(capability.to_bytes()).map_err(|_| Errno::EINVAL.to_uae())?;
        let secret = CapabilitySecret(*self.drive.key().seal(&capability).expose());
        Ok(DriveCapability { arguments, secret, seconds: grant.seconds as u32 })
    }

    /// The access list of a directory has changed.
    pub(crate) fn access_list_changed(&self, directory: Fid) -> Telling {
        self.drive.revocations.revoke(Group::Directory(directory));
        for file in self.of_files.take_of_directory(directory) {
            self.drive.revocations.revoke(Group::File(file));
        }
        self.layouts.list_changed(directory)
    }

    /// The mode, owner or directory of a file has changed, or the file is gone. Streams in progress look at it
    /// again.
    pub(crate) fn file_changed(&self, file: Fid) -> Telling {
        self.stamps.count(file);
        if self.of_files.take(file) {
            self.drive.revocations.revoke(Group::File(file));
        }
        self.layouts.file_changed(file)
    }

    /// The content of a volume was replaced, or it is no longer served here.
    pub(crate) fn volume_changed(&self, volume: VolumeId) {
        self.drive.revocations.revoke(Group::Volume(volume));
        self.stamps.count_all();
        self.layouts.volume_changed(volume);
    }
}

/// Seconds that a capability of a caller may last.
pub(crate) fn lifetime(identity: &Identity, now: u64) -> u64 {
    let expires = match identity {
        Identity::Proven(credential) => credential.expires,
        _ => None,
    };
    expires.map_or(LIFETIME, |expires| expires.secs.saturating_sub(now).min(LIFETIME))
}
