//! What a file server looks at before it serves a capability, and again before each piece: the holder, the
//! volume, and the file itself.

use std::net::IpAddr;
use std::sync::Arc;

use afs_datapath::capability::{Access, Capability, Refusal};
use afs_datapath::session::Failure;
use afs_drive::DriveError;
use afs_volume::{VnodeRecord, VolumeError, VolumeHeader};
use afs_wire::error::AbortCode;
use afs_wire::fs::FileKind;
use afs_wire::ids::Fid;
use afs_wire::rpc::ServiceId;

use super::{Holder, Stamp};
use crate::access::reach;
use crate::file::FileServer;
use crate::volume_states::Served;

/// A file that is read or written by a capability, and what it was looked at with.
pub(super) struct Looked {
    pub(super) capability: Capability,
    /// The kind of access in progress.
    pub(super) access: Access,
    pub(super) peer: IpAddr,
    pub(super) fid: Fid,
    pub(super) holder: Arc<Holder>,
    pub(super) served: Served,
    stamp: Stamp,
}

impl Looked {
    /// Looks at everything for the first time.
    pub(super) async fn first(
        server: &FileServer,
        capability: Capability,
        access: Access,
        peer: IpAddr,
        fid: Fid,
    ) -> Result<(Looked, Arc<VolumeHeader>, Arc<VnodeRecord>), Failure> {
        // Before the file is: a change after this is seen.
        let stamp = server.data_path.stamps().of(fid);
        let holder = server.data_path.holders().get(capability.holder).ok_or(Refusal::Revoked)?;
        let is_change = access == Access::WRITE;
        server.wait_for(fid.volume, is_change).await;
        server.recall_from_others(fid, Some(holder.host_id())).await.map_err(failed)?;
        let (served, header) =
            server.states.serving(&server.partitions, fid.volume, is_change).map_err(failed)?;
        if is_change && !header.is_writable() {
            return Err(Refusal::NotAllowed.into());
        }
        let looked = Looked { capability, access, peer, fid, holder, served, stamp };
        looked.look_at_holder(server, &header).await?;
        let record = looked.look_at_file(server).await?;
        server.states.uses().count(fid.volume, server.unix_now());
        Ok((looked, header, record))
    }

    /// Looks again at what may have changed.
    pub(super) async fn again(&mut self, server: &FileServer) -> Result<(), Failure> {
        let header = self.served.volume.header();
        // A volume that is busy for a moment refuses changes; the store's own is made later.
        server.states.check(self.served.site, false).map_err(failed)?;
        if !header.online {
            return Err(Failure::Unavailable);
        }
        self.look_at_holder(server, &header).await?;
        let stamp = server.data_path.stamps().of(self.fid);
        if stamp != self.stamp {
            self.look_at_file(server).await?;
            self.stamp = stamp;
        }
        Ok(())
    }

    /// The user still has the groups of the capability, and the requirements on connections are met.
    async fn look_at_holder(&self, server: &FileServer, header: &VolumeHeader) -> Result<(), Failure> {
        let (holder, policy, volume) = (&self.holder, server.guard.policy(), header.name.as_str());
        let is_open = policy.service_hears(ServiceId::FILE, &holder.identity)
            && policy.volume_is_open(volume, &holder.identity)
            && (!server.data_path.may_be_clear() || policy.is_open_to_all(volume));
        if !is_open || !holder.may_come_from(self.peer) {
            return Err(Refusal::NotAllowed.into());
        }
        match holder.has_its_groups(server.guard.names()).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                server.data_path.holders().remove(holder.id);
                Err(Refusal::Revoked.into())
            }
            // By calls the client gets the name service's own code.
            Err(_) => Err(Failure::Busy),
        }
    }

    /// The file is where the capability says, and its mode permits the access.
    async fn look_at_file(&self, server: &FileServer) -> Result<Arc<VnodeRecord>, Failure> {
        let fid = self.fid;
        let found = server.read(&self.served.volume, move |volume| volume.fetch(fid)).await;
        let record = found.map_err(|error| failure_of(server, fid, &error))?;
        self.permits(&record)?;
        Ok(record)
    }

    /// Whether the capability permits the access to a file with this record.
    pub(super) fn permits(&self, record: &VnodeRecord) -> Result<(), Refusal> {
        let parent = Fid { volume: self.fid.volume, vnode: record.parent, unique: record.parent_unique };
        let is_elsewhere = self.capability.group.parent().is_some_and(|directory| directory != parent);
        if record.kind != FileKind::File || is_elsewhere {
            return Err(Refusal::OtherObject);
        }
        let by_mode = match self.access == Access::WRITE {
            true => reach::is_writable(record.mode),
            false => reach::is_readable(record.mode),
        };
        if by_mode || self.capability.access.permits(Access::ANY_MODE) {
            Ok(())
        } else {
            Err(Refusal::NotAllowed)
        }
    }
}

/// The failure for an error of a volume, which is also logged unless it is a refusal.
pub(super) fn failure_of(server: &FileServer, fid: Fid, error: &VolumeError) -> Failure {
    let code = server.code(fid, error);
    match error {
        VolumeError::Drive(DriveError::Away { .. }) => Failure::Unavailable,
        _ => failed(code),
    }
}

/// The failure for what would be the code of a call.
pub(super) fn failed(code: AbortCode) -> Failure {
    match code {
        AbortCode::VNOVNODE => Failure::NoObject,
        AbortCode::VNOVOL | AbortCode::VMOVED | AbortCode::VOFFLINE => Failure::Unavailable,
        AbortCode::VBUSY => Failure::Busy,
        AbortCode::VOVERQUOTA | AbortCode::VDISKFULL => Failure::NoSpace,
        _ => Failure::Io,
    }
}
