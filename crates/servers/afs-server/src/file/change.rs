//! One change of a list: its data made ready, then its transaction, its broken promises and its reply, all as in the
//! single call.

use std::sync::Arc;

use afs_volume::{ListOutcome, NewData, NumberedList, StoreData, VolumeError, VolumeHeader, VolumeTx};
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, ANY_VERSION, ChangeReply, SetStatus};
use afs_wire::ids::Fid;
use bytes::Bytes;

use super::broken::Broken;
use super::create::{self, Made};
use super::link::{self, LinkedBy};
use super::object::check_in_service;
use super::recalls::Unlent;
use super::remove::{self, RemovedBy};
use super::rename::{self, RenamedBy};
use super::server::FileServer;
use super::status::{self, ChangedBy};
use super::store::wide;
use super::storing::store_within;
use crate::call_context::CallContext;
use crate::hosts::HostId;
use crate::subject::Subject;
use crate::volume_states::Served;

/// A change that needs nothing but its transaction.
pub(super) enum Ready {
    CreateFile(fs::CreateFile, NewData),
    MakeDir(fs::MakeDir),
    Symlink(fs::Symlink),
    Link(fs::Link),
    Store(StoreData, NewData),
    StoreStatus(fs::StoreStatus),
    RemoveFile(fs::RemoveFile),
    RemoveDir(fs::RemoveDir),
    Rename(fs::Rename),
    /// A change whose arguments cannot be.
    Refused(AbortCode),
}

/// A change that was made.
pub(super) enum Done {
    CreateFile(Fid, Made),
    MakeDir(Fid, Made),
    Symlink(Fid, Made),
    Link([Fid; 2], LinkedBy),
    Store(Fid, SetStatus, ChangedBy),
    StoreStatus(Fid, SetStatus, ChangedBy),
    RemoveFile(Fid, RemovedBy),
    RemoveDir(Fid, RemovedBy),
    Rename([Fid; 2], Box<RenamedBy>),
}

impl FileServer {
    /// Makes a change ready. The only wait is for a disk, where a file that is stored has too many small pieces.
    pub(super) async fn ready(&self, context: &CallContext, served: &Served, change: fs::Change) -> Ready {
        match change {
            fs::Change::CreateFile(fs::CreateSmall { create, data }) => {
                match self.small_data(served, 0, data.into_vec()).await {
                    Ok(data) => Ready::CreateFile(create, data),
                    Err(code) => Ready::Refused(code),
                }
            }
            fs::Change::Store(store) => {
                self.ready_to_store(context, served, store).await.unwrap_or_else(Ready::Refused)
            }
            fs::Change::MakeDir(call) => Ready::MakeDir(call),
            fs::Change::Symlink(call) => Ready::Symlink(call),
            fs::Change::Link(call) => Ready::Link(call),
            fs::Change::StoreStatus(call) => Ready::StoreStatus(call),
            fs::Change::RemoveFile(call) => Ready::RemoveFile(call),
            fs::Change::RemoveDir(call) => Ready::RemoveDir(call),
            fs::Change::Rename(call) => Ready::Rename(call),
        }
    }

    /// As [`FileServer::change`], for changes that are made one after the other until one fails, as a list of a series.
    pub(super) async fn change_in_order<C: Send + 'static>(
        self: &Arc<Self>,
        served: &Served,
        holder: Option<HostId>,
        list: NumberedList,
        changes: Vec<C>,
        mut change: impl FnMut(&mut VolumeTx<'_, '_>, C) -> Result<(Done, u64), VolumeError> + Send + 'static,
    ) -> Result<ListOutcome<(Done, u64)>, VolumeError> {
        let (states, site) = (self.states.clone(), served.site);
        let unlent = Unlent::new(self.leases(), holder);
        let checked = unlent.clone();
        let apply = move |tx: &mut VolumeTx<'_, '_>, next| {
            check_in_service(tx, &states, site)?;
            let done = change(tx, next);
            checked.check(tx, done)
        };
        let changed = served.volume.update_list(list, changes, apply, |(done, _)| done.object()).await;
        // Not waited for: the holder of the other lease may wait for the end of this list.
        let server = self.clone();
        if unlent.has_found() {
            self.env.spawn(Box::pin(async move { server.recall_found(&unlent).await }));
        }
        changed
    }

    async fn ready_to_store(
        &self,
        context: &CallContext,
        served: &Served,
        store: fs::StoreSmall,
    ) -> Result<Ready, AbortCode> {
        let fs::StoreSmall { fid, status, expected, position, file_length, data } = store;
        let length = data.len() as u64;
        wide(fs::StoreData64 { fid, status, position, length, file_length }, i64::MAX as u64)?;
        let data = self.small_data(served, position, data.into_vec()).await?;
        // Who may not store makes no work. Whether the caller may is decided in the transaction, since an earlier change
        // of the list may have given or taken the right.
        if self.find_to_store(context, fid, &status).await.is_ok() {
            served.volume.compact_for(fid, &data).await.map_err(|error| self.code(fid, &error))?;
        }
        let expected = Some(expected).filter(|expected| *expected != ANY_VERSION);
        Ok(Ready::Store(StoreData { fid, file_length, status, expected }, data))
    }

    /// Bytes that came with the call, for a position of a file. They are few enough for the log, so that no disk is
    /// waited for.
    async fn small_data(&self, served: &Served, position: u64, bytes: Vec<u8>) -> Result<NewData, AbortCode> {
        let failed = |error| self.code(Fid::root(served.site.volume), &error);
        let mut writer = served.volume.write_data(position).map_err(failed)?;
        self.statistics.count_stored_data(bytes.len() as u64);
        writer.push(Bytes::from(bytes)).await.map_err(failed)?;
        writer.finish().await.map_err(failed)
    }

    /// Adds the objects that a change concerns.
    pub(super) fn breaks_of_done(&self, done: &Done, broken: &mut Broken) {
        match done {
            Done::CreateFile(dir, _) | Done::MakeDir(dir, _) | Done::Symlink(dir, _) => {
                broken.for_others(*dir)
            }
            Done::Link(fids, _) => fids.iter().for_each(|fid| broken.for_others(*fid)),
            Done::Store(fid, set, _) | Done::StoreStatus(fid, set, _) => {
                self.change_breaks(*fid, set, broken)
            }
            Done::RemoveFile(dir, (removed, _)) | Done::RemoveDir(dir, (removed, _)) => {
                self.removal_breaks(*dir, removed, broken);
            }
            Done::Rename(dirs, renamed) => self.rename_breaks(*dirs, renamed, broken),
        }
    }

    /// The reply of a change, with a promise on a new file or directory.
    pub(super) async fn reply_of(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        done: Done,
    ) -> ChangeReply {
        match done {
            Done::CreateFile(_, made) => {
                ChangeReply::CreateFile(self.created_reply(context, header, made).await)
            }
            Done::MakeDir(_, made) => ChangeReply::MakeDir(self.created_reply(context, header, made).await),
            Done::Symlink(_, made) => ChangeReply::Symlink(made.of_symlink(self, context, header)),
            Done::Link(_, linked) => ChangeReply::Link(self.link_reply(context, header, &linked)),
            Done::Store(_, _, changed) => ChangeReply::Store(self.status_reply(context, header, &changed)),
            Done::StoreStatus(_, _, changed) => {
                ChangeReply::StoreStatus(self.status_reply(context, header, &changed))
            }
            Done::RemoveFile(_, removed) => {
                ChangeReply::RemoveFile(self.remove_reply(context, header, &removed))
            }
            Done::RemoveDir(_, removed) => {
                ChangeReply::RemoveDir(self.remove_reply(context, header, &removed))
            }
            Done::Rename(_, renamed) => ChangeReply::Rename(self.rename_reply(context, header, &renamed)),
        }
    }

    /// There is no promise on an object that a later change of the list has removed again.
    async fn created_reply(
        &self,
        context: &CallContext,
        header: &VolumeHeader,
        made: Made,
    ) -> fs::CreateReply {
        match self.find(context, made.created.object.fid(header.id)).await {
            Ok(_) => made.with_promise(self, context, header).await,
            Err(_) => made.without_promise(self, context, header),
        }
    }
}

impl Done {
    /// The object that the change made.
    pub(super) fn object(&self) -> Option<Fid> {
        match self {
            Done::CreateFile(dir, made) | Done::MakeDir(dir, made) | Done::Symlink(dir, made) => {
                Some(made.created.object.fid(dir.volume))
            }
            _ => None,
        }
    }
}

impl Ready {
    /// Makes the change, if the caller may.
    pub(super) fn make(self, tx: &mut VolumeTx<'_, '_>, subject: &Subject) -> Result<Done, VolumeError> {
        Ok(match self {
            Ready::CreateFile(call, data) => {
                Done::CreateFile(call.dir, create_with_data(tx, subject, &call, data)?)
            }
            Ready::MakeDir(call) => Done::MakeDir(call.dir, create::make_dir(tx, subject, &call)?),
            Ready::Symlink(call) => Done::Symlink(call.dir, create::symlink(tx, subject, &call)?),
            Ready::Link(call) => Done::Link([call.dir, call.existing], link::link(tx, subject, &call)?),
            Ready::Store(store, data) => {
                Done::Store(store.fid, store.status, store_within(tx, subject, store, data)?)
            }
            Ready::StoreStatus(fs::StoreStatus { fid, status }) => {
                Done::StoreStatus(fid, status, status::store_status(tx, subject, fid, &status)?)
            }
            Ready::RemoveFile(call) => Done::RemoveFile(call.dir, remove::remove_file(tx, subject, &call)?),
            Ready::RemoveDir(call) => Done::RemoveDir(call.dir, remove::remove_dir(tx, subject, &call)?),
            Ready::Rename(call) => Done::Rename(
                [call.old_dir, call.new_dir],
                Box::new(rename::rename(tx, subject, &call, true)?),
            ),
            Ready::Refused(code) => return Err(VolumeError::Refused(code)),
        })
    }
}

/// A creation and, for a file with bytes, a store: both or neither.
fn create_with_data(
    tx: &mut VolumeTx<'_, '_>,
    subject: &Subject,
    call: &fs::CreateFile,
    data: NewData,
) -> Result<Made, VolumeError> {
    let mut made = create::create_file(tx, subject, call)?;
    if !data.is_empty() {
        let fid = made.created.object.fid(call.dir.volume);
        let status = SetStatus { mod_time: call.status.mod_time, ..SetStatus::default() };
        let store = StoreData { fid, file_length: 0, status, expected: None };
        (made.created.object, _) = store_within(tx, subject, store, data)?;
    }
    Ok(made)
}
