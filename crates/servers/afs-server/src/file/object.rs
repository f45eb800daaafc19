//! Look-up of objects, access checks on them, and their status replies.

use std::sync::Arc;

use afs_drive::DriveError;
use afs_rpc::EnvExt;
use afs_volume::{Actor, Depth, Reads, VnodeRecord, Volume, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::acl::Acl;
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{CallBack, FileKind, Status, VolSync};
use afs_wire::ids::{Fid, Rights, VolumeId};

use super::past::{Past, is_past};
use super::recalls::Unlent;
use super::server::FileServer;
use crate::access::{self, Operation};
use crate::call_context::CallContext;
use crate::callbacks::Grant;
use crate::hosts::HostId;
use crate::subject::Subject;
use crate::volume_states::{Served, Site, VolumeStates};

/// An object that was found, with the attributes that access depends on.
pub(super) struct Found {
    pub(super) served: Served,
    pub(super) header: Arc<VolumeHeader>,
    pub(super) record: Arc<VnodeRecord>,
    /// The access list of the object, or of its directory.
    pub(super) acl: Arc<Acl>,
    /// What the present says of an object in an earlier state of its volume.
    pub(super) past: Option<Past>,
}

impl FileServer {
    /// The volume of a fid, if it serves reads, or changes, on such a connection.
    pub(super) fn volume(
        &self,
        context: &CallContext,
        fid: Fid,
        change: bool,
    ) -> Result<(Served, Arc<VolumeHeader>), AbortCode> {
        if fid.volume.0 == 0 || fid.vnode.0 == 0 {
            return Err(Errno::EINVAL.to_uae());
        }
        let (served, header) = self.states.serving(&self.partitions, fid.volume, change)?;
        if !self.guard.policy().volume_is_open(header.name.as_str(), &context.identity) {
            return Err(Errno::EACCES.to_uae());
        }
        if change && !header.is_writable() {
            return Err(Errno::EROFS.to_uae());
        }
        self.states.uses().count(fid.volume, self.unix_now());
        Ok((served, header))
    }

    /// Whether the policy opens a volume to such a connection; a volume that is not here is closed.
    pub(super) fn is_open(&self, context: &CallContext, volume: VolumeId) -> bool {
        let header = self.partitions.volume(volume).map(|volume| volume.header());
        let policy = self.guard.policy();
        header.is_none_or(|header| policy.volume_is_open(header.name.as_str(), &context.identity))
    }

    /// An object to be read, of which no other client has a lease.
    pub(super) async fn find(&self, context: &CallContext, fid: Fid) -> Result<Found, AbortCode> {
        let (served, header) = self.unlent_volume(context, &[fid], false).await?;
        self.found(served, header, fid).await
    }

    /// An object to be changed, of which no other client has a lease.
    pub(super) async fn find_to_change(&self, context: &CallContext, fid: Fid) -> Result<Found, AbortCode> {
        let (served, header) = self.unlent_volume(context, &[fid], true).await?;
        self.found(served, header, fid).await
    }

    /// An object of a volume that is on line.
    pub(super) async fn found(
        &self,
        served: Served,
        header: Arc<VolumeHeader>,
        fid: Fid,
    ) -> Result<Found, AbortCode> {
        let read = self.read(&served.volume, move |volume| {
            let record = volume.fetch(fid)?;
            if record.is_directory() {
                return Ok((record.acl.clone(), record));
            }
            let parent = volume.vnode(record.parent)?;
            Ok((parent.and_then(|parent| parent.acl.clone()), record))
        });
        let (acl, record) = read.await.map_err(|error| self.code(fid, &error))?;
        let past = self.past(&served, &header, &record).await.map_err(|error| self.code(fid, &error))?;
        Ok(Found { served, header, record, acl: acl.unwrap_or_default(), past })
    }

    /// Reads a volume: on the calling thread where memory suffices, else on a thread that may wait for a
    /// disk. `read` may run twice. The thread that receives packets runs calls, so a disk read there would
    /// stall all clients.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        volume: &Arc<Volume>,
        read: impl Fn(Reads<'_>) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, VolumeError> {
        match read(volume.reads(Depth::Memory)) {
            Err(VolumeError::NotInMemory) => {}
            done => return done,
        }
        let volume = volume.clone();
        // No result means that the server is stopping, and the call with it.
        self.env.run_blocking(move || read(volume.reads(Depth::Disk))).await.unwrap_or(Err(VolumeError::Busy))
    }

    /// Grants the caller a promise, unless it may have none at present. Must precede the read of the object
    /// for the reply.
    pub(super) async fn promise(
        &self,
        context: &CallContext,
        fid: Fid,
        header: &VolumeHeader,
        grant: Grant,
    ) -> CallBack {
        let (fid, grant) = if header.is_writable() {
            (fid, grant)
        } else {
            (Fid::whole_volume(fid.volume), Grant::ReadOnlyVolume)
        };
        if is_past(header) {
            // Before the read, as the promise: the rights rest on the read-write volume.
            self.clients.note_past(header.parent, header.id);
        }
        let Some(seconds) = self.clients.promise(fid, &context.host, grant).await else {
            return CallBack::NONE;
        };
        let promise = CallBack::shared(seconds);
        let covers_rights = context.host.keeps_rights() && self.guard.names().follows_changes();
        if covers_rights { promise.with_rights() } else { promise }
    }

    /// The status of an object for a caller.
    pub(super) fn status(
        &self,
        subject: &Subject,
        header: &VolumeHeader,
        record: &VnodeRecord,
        acl: &Acl,
    ) -> Status {
        let access = access::rights(subject, &object(header, record, acl));
        self.status_with(subject, header, record, acl, access)
    }

    /// The status of an object that was found, as this record has it.
    pub(super) fn status_of(&self, subject: &Subject, found: &Found, record: &VnodeRecord) -> Status {
        let access = found.rights(subject);
        let status = self.status_with(subject, &found.header, record, &found.acl, access);
        Status { anonymous_access: found.anonymous_rights(subject), ..status }
    }

    /// As [`FileServer::status`], with rights computed already.
    pub(super) fn status_with(
        &self,
        subject: &Subject,
        header: &VolumeHeader,
        record: &VnodeRecord,
        acl: &Acl,
        caller_access: Rights,
    ) -> Status {
        // A directory gives itself as its parent (docs/protocol fileserver.md "15. Traps", T1).
        let (parent, parent_unique) = if record.is_directory() {
            (record.vnode, record.unique)
        } else {
            (record.parent, record.parent_unique)
        };
        Status {
            kind: record.kind,
            link_count: record.link_count,
            length: record.length,
            data_version: record.data_version,
            author: record.author,
            owner: record.owner,
            caller_access,
            anonymous_access: access::anonymous_rights(subject, acl),
            mode: record.mode,
            parent,
            parent_unique,
            client_mod_time: record.client_mod_time,
            server_mod_time: record.change_time,
            group: record.group,
            lock_count: self.locks.count(record.fid(header.id), self.clients.now()),
            error: AbortCode::OK,
        }
    }

    /// The code for a failure of the volume store. Failures other than refusals are also logged.
    pub(crate) fn code(&self, fid: Fid, error: &VolumeError) -> AbortCode {
        match error {
            // Of the drive itself the log tells once, as a warning.
            VolumeError::Drive(DriveError::Away { .. }) => {
                tracing::info!(%fid, %error, "bytes of a file cannot be read or stored now");
            }
            VolumeError::Damaged { .. } | VolumeError::Index(_) | VolumeError::Drive(_) => {
                tracing::error!(%fid, %error, "a volume cannot be used");
                self.partitions.note(fid.volume, error);
            }
            _ => {}
        }
        error.code()
    }

    /// Changes a volume in one transaction. Inside it the volume's state is checked again: the volume
    /// service, when it takes a volume from clients, first sets the state and then waits for a transaction of
    /// its own, after which no change is admitted.
    ///
    /// If the transaction would change an object that is leased to a client other than `holder` (it was lent after the look-up, or
    /// found by a name), nothing is changed: the lease is recalled, and the code is VBUSY.
    pub(super) async fn change<T: Send + 'static>(
        &self,
        served: &Served,
        holder: Option<HostId>,
        fid: Fid,
        change: impl FnOnce(&mut VolumeTx<'_, '_>) -> Result<T, VolumeError> + Send + 'static,
    ) -> Result<T, AbortCode> {
        let (states, site) = (self.states.clone(), served.site);
        let unlent = Unlent::new(self.leases(), holder);
        let checked = unlent.clone();
        let changed = served.volume.update(move |tx| {
            check_in_service(tx, &states, site)?;
            let done = change(tx);
            checked.check(tx, done)
        });
        let changed = changed.await.map_err(|error| self.code(fid, &error));
        self.recall_found(&unlent).await;
        changed
    }

    /// As [`FileServer::change`], for a change that can be tried again when what it found by a name was recalled.
    pub(super) async fn change_again<T: Send + 'static>(
        &self,
        served: &Served,
        context: &CallContext,
        fid: Fid,
        change: impl Fn(&mut VolumeTx<'_, '_>) -> Result<T, VolumeError> + Send + Sync + 'static,
    ) -> Result<T, AbortCode> {
        let (change, holder) = (Arc::new(change), Some(context.host.id()));
        let first = change.clone();
        match self.change(served, holder, fid, move |tx| first(tx)).await {
            // Also when the volume is busy: the state is looked at again.
            Err(AbortCode::VBUSY) => self.change(served, holder, fid, move |tx| change(tx)).await,
            done => done,
        }
    }
}

/// Within a transaction: whether the volume takes changes of clients.
pub(super) fn check_in_service(
    tx: &VolumeTx<'_, '_>,
    states: &VolumeStates,
    site: Site,
) -> Result<(), VolumeError> {
    states.check(site, true).map_err(VolumeError::Refused)?;
    if tx.header().online { Ok(()) } else { Err(VolumeError::Offline) }
}

impl Found {
    /// The directory of a file.
    pub(super) fn directory(&self, volume: VolumeId) -> Fid {
        Fid { volume, vnode: self.record.parent, unique: self.record.parent_unique }
    }

    /// The object by its own list; in an earlier state of its volume the present decides too.
    fn own(&self) -> access::Object<'_> {
        object(&self.header, &self.record, &self.acl)
    }

    pub(super) fn check(&self, subject: &Subject, operation: Operation<'_>) -> Result<(), AbortCode> {
        access::check(subject, &self.own(), operation)?;
        self.past.as_ref().map_or(Ok(()), |past| past.check(subject, self.record.kind, operation))
    }

    /// The rights of a caller, as the status reports them.
    pub(super) fn rights(&self, subject: &Subject) -> Rights {
        self.limited(subject, access::rights(subject, &self.own()), |now| access::rights(subject, now))
    }

    fn anonymous_rights(&self, subject: &Subject) -> Rights {
        let own = access::anonymous_rights(subject, &self.acl);
        self.limited(subject, own, |now| access::anonymous_rights(subject, now.acl))
    }

    fn limited(&self, subject: &Subject, own: Rights, of: impl Fn(&access::Object<'_>) -> Rights) -> Rights {
        self.past.as_ref().map_or(own, |past| past.limit(subject, self.record.kind, own, of))
    }
}

/// The attributes of an object for access control.
pub(super) fn object<'a>(header: &VolumeHeader, record: &VnodeRecord, acl: &'a Acl) -> access::Object<'a> {
    access::Object {
        kind: record.kind,
        owner: record.owner,
        mode: record.mode,
        acl,
        volume_owner: header.owner,
    }
}

/// Decides within a transaction; returns the access list that was used.
pub(super) fn check_within(
    tx: &mut VolumeTx<'_, '_>,
    record: &VnodeRecord,
    subject: &Subject,
    operation: Operation<'_>,
) -> Result<Arc<Acl>, VolumeError> {
    let acl = tx.access_directory(record)?.acl.unwrap_or_default();
    let allowed = access::check(subject, &object(tx.header(), record, &acl), operation);
    allowed.map_err(|errno| VolumeError::Refused(errno.to_uae()))?;
    Ok(acl)
}

/// The directory of a fid, with a check of the caller's rights.
pub(super) fn directory_within(
    tx: &mut VolumeTx<'_, '_>,
    fid: Fid,
    subject: &Subject,
    operation: Operation<'_>,
) -> Result<Arc<Acl>, VolumeError> {
    let record = tx.directory(fid)?;
    check_within(tx, &record, subject, operation)
}

/// The caller, as the store's own rules see it.
pub(super) fn actor(subject: &Subject) -> Actor {
    Actor { id: subject.id(), administrator: subject.is_administrator() }
}

pub(super) fn sync(header: &VolumeHeader) -> VolSync {
    VolSync { creation: header.creation_date }
}

/// Whether the object is a regular file.
pub(super) fn is_file(record: &VnodeRecord) -> bool {
    record.kind == FileKind::File
}
