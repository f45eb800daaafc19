//! After the loss of a lease: what the server does not have is made by single calls, under their rules. What cannot be made is logged; the
//! data of a file is set aside for its user, and the next close or fsync of an open file returns the error.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Change, SmallData};
use afs_wire::ids::{DataVersion, Fid, UnixSeconds};
use afs_wire::rpc::Request;

use super::may_be_sent_again;
use crate::calls::CallOutcome;
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::User;
use crate::key::Key;
use crate::leases::{Entry, Lease};
use crate::venus::Venus;
use crate::venus::maintenance::is_final;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// Data of a file that is there, to be stored to it.
pub(super) struct MadeGood {
    vnode: Arc<Vnode>,
    user: User,
    version: DataVersion,
    data: SmallData,
    time: Option<UnixSeconds>,
}

impl Venus {
    /// Makes what waits by single calls, in order.
    ///
    /// # Errors
    /// The server cannot be reached: the rest is made later.
    pub(super) async fn make_good(&self, lease: &Arc<Lease>, good: &mut Vec<MadeGood>) -> Result<()> {
        while let Some(entry) = lease.journal(|journal| journal.first()) {
            let me = self.as_user(entry.user);
            match Box::pin(me.make_alone(lease, &entry, good)).await {
                Ok(()) => {}
                Err(error) if may_be_sent_again(&error) => return Err(error),
                Err(error) => me.is_given_up(lease, &entry, &error).await,
            }
            self.forget_decided(lease, &entry);
            lease.journal(|journal| journal.first_is_over());
        }
        Ok(())
    }

    async fn make_alone(&self, lease: &Arc<Lease>, entry: &Entry, good: &mut Vec<MadeGood>) -> Result<()> {
        let at = |fid: Fid| lease.in_place_of(fid);
        match &entry.change {
            Change::CreateFile(small) => {
                let call = fs::CreateFile { dir: at(small.create.dir), ..small.create.clone() };
                let made = self.made_alone(lease, call).await;
                let made = made.map(|reply| (reply.fid, reply.status.data_version));
                if let Some((fid, version)) = self.or_by_list(lease, entry, made).await?
                    && !small.data.is_empty()
                {
                    let (data, time) = (small.data.clone(), small.create.status.mod_time);
                    good.push(self.good(lease, entry, fid, version, data, time));
                }
                Ok(())
            }
            Change::MakeDir(call) => {
                let call = fs::MakeDir { dir: at(call.dir), ..call.clone() };
                let made = self.made_alone(lease, call).await.map(|reply| (reply.fid, DataVersion(0)));
                self.or_by_list(lease, entry, made).await.map(drop)
            }
            Change::Symlink(call) => {
                let call = fs::Symlink { dir: at(call.dir), ..call.clone() };
                let made = self.made_alone(lease, call).await.map(|reply| (reply.fid, DataVersion(0)));
                self.or_by_list(lease, entry, made).await.map(drop)
            }
            Change::Store(call) => {
                let (data, time) = (call.data.clone(), call.status.mod_time);
                good.push(self.good(lease, entry, at(call.fid), call.expected, data, time));
                Ok(())
            }
            Change::StoreStatus(call) => {
                let call = fs::StoreStatus { fid: at(call.fid), ..call.clone() };
                self.made_alone(lease, call).await.map(drop)
            }
            Change::RemoveFile(call) => {
                if let Some(kept) = entry.unlinked.filter(|key| lease.was_not_linked(*key)) {
                    return Err(VenusError::new(ErrorKind::Exists, "Link").of(kept.fid));
                }
                let call = fs::RemoveFile { dir: at(call.dir), ..call.clone() };
                unless_gone(self.made_alone(lease, call).await.map(drop))
            }
            Change::RemoveDir(call) => {
                let call = fs::RemoveDir { dir: at(call.dir), ..call.clone() };
                unless_gone(self.made_alone(lease, call).await.map(drop))
            }
            Change::Rename(call) => {
                let (old_dir, new_dir) = (at(call.old_dir), at(call.new_dir));
                let call = fs::Rename { old_dir, new_dir, ..call.clone() };
                unless_gone(self.made_alone(lease, call).await.map(drop))
            }
            Change::Link(call) => {
                let (dir, existing) = (at(call.dir), at(call.existing));
                let call = fs::Link { dir, existing, ..call.clone() };
                let made = self.made_alone(lease, call.clone()).await.map(drop);
                self.unless_linked(lease, entry, &call, made).await
            }
        }
    }

    /// A name that is there was made by the list whose reply was lost, or by others. Unless the file has several names, it keeps the one
    /// that a later change removes.
    async fn unless_linked(
        &self,
        lease: &Lease,
        entry: &Entry,
        call: &fs::Link,
        made: Result<()>,
    ) -> Result<()> {
        let Err(error) = made else { return Ok(()) };
        if may_be_sent_again(&error) {
            return Err(error);
        }
        if error.kind == ErrorKind::Exists {
            let names = self.made_alone(lease, fs::FetchStatus { fid: call.existing }).await;
            match names.map(|reply| reply.status.link_count) {
                Ok(2..) => return Ok(()),
                Err(error) if may_be_sent_again(&error) => return Err(error),
                _ => {}
            }
        }
        lease.note_not_linked(entry.vnode.key);
        Err(error)
    }

    async fn made_alone<R: Request + Clone>(&self, lease: &Lease, call: R) -> Result<R::Reply>
    where
        R::Reply: Send,
    {
        let call = Box::pin(self.calls.call(&self.context, &lease.volume, call));
        let outcome: CallOutcome<R::Reply> = call.await;
        outcome.result.map(|answered| answered.value)
    }

    /// The object that was made, unless a list whose reply was lost has made the one with the lent fid.
    async fn or_by_list(
        &self,
        lease: &Lease,
        entry: &Entry,
        made: Result<(Fid, DataVersion)>,
    ) -> Result<Option<(Fid, DataVersion)>> {
        match made {
            Ok((fid, version)) => {
                lease.replace(entry.object, fid);
                Ok(Some((fid, version)))
            }
            Err(error) if error.kind == ErrorKind::Exists => {
                match self.made_alone(lease, fs::FetchStatus { fid: entry.vnode.key.fid }).await {
                    Ok(_) => Ok(None),
                    Err(other) if may_be_sent_again(&other) => Err(other),
                    Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn good(
        &self,
        lease: &Lease,
        entry: &Entry,
        fid: Fid,
        version: DataVersion,
        data: SmallData,
        time: Option<UnixSeconds>,
    ) -> MadeGood {
        let vnode = self.vnode(Key::new(lease.dir.cell, fid));
        MadeGood { vnode, user: entry.user, version, data, time }
    }

    /// What was decided of an object and its directory is not known to be so.
    fn forget_decided(&self, lease: &Lease, entry: &Entry) {
        entry.dirs.iter().for_each(|(dir, _)| self.forget_copy(dir));
        if let Some(unlinked) = entry.unlinked.and_then(|key| self.vnodes.peek(key)) {
            self.distrust(&unlinked);
            self.invalidate(unlinked.key);
        }
        let key = entry.vnode.key;
        if entry.change.makes_object() && lease.in_place_of(key.fid) != key.fid {
            entry.vnode.state().is_gone = true;
            self.note_removed(&entry.vnode);
        } else {
            self.distrust(&entry.vnode);
        }
        self.invalidate(key);
    }

    /// The server has another directory than the copy here.
    pub(super) fn forget_copy(&self, dir: &Arc<Vnode>) {
        self.distrust(dir);
        dir.state().directory = None;
        self.invalidate(dir.key);
    }

    /// Gives up all that waits.
    pub(super) async fn give_up_lease(&self, lease: &Arc<Lease>, error: &VenusError) {
        lease.lose(0);
        while let Some(entry) = lease.journal(|journal| journal.first()) {
            self.as_user(entry.user).is_given_up(lease, &entry, error).await;
            lease.journal(|journal| journal.first_is_over());
        }
        self.leases.remove(lease);
    }

    /// A change will not be made.
    async fn is_given_up(&self, lease: &Lease, entry: &Entry, error: &VenusError) {
        let (dir, change) = (lease.dir.fid, &entry.change);
        tracing::error!(%error, %dir, ?change, "a change that was decided under a lease could not be made");
        let key = entry.vnode.key;
        if let Some((data, time)) = data_of(change).filter(|(data, _)| !data.is_empty()) {
            let bytes = data.as_bytes().to_vec().into();
            let aside = self.files.set_bytes_aside(key, self.context.user, bytes, time, error).await;
            match aside {
                Ok(number) => self.keep_aside(&entry.vnode, number).await,
                Err(error) => {
                    tracing::error!(%error, fid = %key.fid, "data that could not be stored is lost: the cache does not take it");
                }
            }
        }
        if entry.vnode.state().file.opens() > 0 {
            self.leases.note_failure(key, error.clone());
        }
    }

    /// Stores data to a file that was made by a single call; what cannot be stored is kept as after a close.
    pub(super) async fn store_made_good(&self, unsaved: MadeGood) {
        let MadeGood { vnode, user, version, data, time } = unsaved;
        let me = self.as_user(user);
        let bytes = data.as_bytes().to_vec().into();
        let data = match me.files.unsaved_data(&vnode, user, version, bytes, time).await {
            Ok(data) => data,
            Err(full) => {
                if let Err(error) = me.store_from_memory(&vnode, data, time).await {
                    tracing::error!(%error, %full, fid = %vnode.key.fid, "data is lost: the server and the cache do not take it");
                }
                return;
            }
        };
        match me.store(&vnode, &data, StoreReason::Close).await {
            Ok(()) => me.files.retire(&vnode, &data, user).await,
            Err(error) if is_final(error.kind) => me.give_up_data(&vnode, &error).await,
            Err(error) => {
                me.files.note_failure(vnode.key, &error);
                me.keep_unsaved(&vnode, &data).await;
            }
        }
    }

    /// Stores data for which the cache has no room: as a list of this one change, whatever version the server has.
    async fn store_from_memory(
        &self,
        file: &Vnode,
        data: SmallData,
        time: Option<UnixSeconds>,
    ) -> Result<()> {
        let fid = file.key.fid;
        let gone = VenusError::new(ErrorKind::Stale, "StoreData").of(fid);
        let volume = self.location.volume_of(file.key).ok_or(gone)?;
        let status = fs::SetStatus { mod_time: time, ..fs::SetStatus::default() };
        let store =
            fs::StoreSmall { fid, status, expected: fs::ANY_VERSION, position: 0, file_length: 0, data };
        let changes = fs::Changes::first_of(std::iter::once(Change::Store(store)));
        let list = fs::ChangeList { volume: volume.id, changes };
        let answered = self.calls.call(&self.context, &volume, list).await.result?;
        // Its status may have been fetched in between.
        self.distrust(file);
        self.invalidate(file.key);
        match answered.value.code {
            AbortCode::OK if answered.value.done.len() == 1 => Ok(()),
            code => Err(VenusError::new(ErrorKind::of_abort(code), "StoreData").of(fid)),
        }
    }
}

/// The bytes of a file in a change, and their time.
fn data_of(change: &Change) -> Option<(&SmallData, Option<UnixSeconds>)> {
    match change {
        Change::CreateFile(small) => Some((&small.data, small.create.status.mod_time)),
        Change::Store(store) => Some((&store.data, store.status.mod_time)),
        _ => None,
    }
}

/// A name that is gone was removed: by the list whose reply was lost, or by others.
fn unless_gone(made: Result<()>) -> Result<()> {
    match made {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
