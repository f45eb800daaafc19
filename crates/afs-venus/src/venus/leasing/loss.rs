//! After the loss of a lease: what the server does not have is made by single calls in the order in which it was decided, under their rules.
//! The data of a file goes with its creation or before its next name, so that others see no name without its data. What cannot be made is
//! logged; the data of a file is set aside for its user, and the next close or fsync of an open file returns the error.

use std::sync::Arc;

use afs_wire::fs::{self, Change, ChangeReply, SmallData};
use afs_wire::ids::{DataVersion, Fid, UnixSeconds};
use afs_wire::rpc::Request;
use bytes::Bytes;

use super::may_be_sent_again;
use crate::calls::CallOutcome;
use crate::error::{ErrorKind, Result, VenusError};
use crate::identity::User;
use crate::key::Key;
use crate::leases::{Decided, Entry, Lease, WholeStore};
use crate::venus::Venus;
use crate::venus::maintenance::is_final;
use crate::venus::store_reason::StoreReason;
use crate::vnode::Vnode;

/// Data that the server did not take for a file that is there: kept, and stored as that of any file.
pub(super) struct Unstored {
    vnode: Arc<Vnode>,
    user: User,
    version: DataVersion,
    data: Bytes,
    time: Option<UnixSeconds>,
}

impl Venus {
    /// Makes what waits by single calls, in order.
    ///
    /// # Errors
    /// The server cannot be reached: the rest is made later.
    pub(super) async fn make_good(&self, lease: &Arc<Lease>, unstored: &mut Vec<Unstored>) -> Result<()> {
        while let Some(entry) = lease.journal(|journal| journal.first()) {
            let me = self.as_user(entry.user);
            match Box::pin(me.make_alone(lease, &entry, unstored)).await {
                Ok(()) => {}
                Err(error) if may_be_sent_again(&error) => return Err(error),
                Err(error) => me.is_given_up(lease, &entry, &error).await,
            }
            self.forget_decided(lease, &entry);
            lease.journal(|journal| journal.first_is_over());
        }
        Ok(())
    }

    async fn make_alone(
        &self,
        lease: &Arc<Lease>,
        entry: &Entry,
        unstored: &mut Vec<Unstored>,
    ) -> Result<()> {
        let at = |fid: Fid| lease.in_place_of(fid);
        let change = match &entry.decided {
            Decided::Change(change) => change,
            Decided::Store(store) => return self.store_whole_alone(lease, entry, store, unstored).await,
        };
        match change {
            Change::CreateFile(small) => {
                let create = fs::CreateFile { dir: at(small.create.dir), ..small.create.clone() };
                self.create_alone(lease, entry, create, &small.data, unstored).await
            }
            Change::MakeDir(call) => {
                let call = fs::MakeDir { dir: at(call.dir), ..call.clone() };
                let made = self.made_alone(lease, call).await.map(|reply| reply.fid);
                self.or_by_list(lease, entry, made).await
            }
            Change::Symlink(call) => {
                let call = fs::Symlink { dir: at(call.dir), ..call.clone() };
                let made = self.made_alone(lease, call).await.map(|reply| reply.fid);
                self.or_by_list(lease, entry, made).await
            }
            Change::Store(call) => {
                let (fid, expected) = (at(call.fid), fs::ANY_VERSION);
                let store = fs::StoreSmall { fid, expected, ..call.clone() };
                match self.listed_alone(lease, Change::Store(store)).await {
                    Err(error) if !may_be_sent_again(&error) => {
                        lease.note_unstored(entry.vnode.key);
                        let time = call.status.mod_time;
                        unstored.push(self.unstored(entry, fid, call.expected, (bytes_of(&call.data), time)));
                        Ok(())
                    }
                    outcome => outcome.map(drop),
                }
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
                has_its_data(lease, entry)?;
                let (old_dir, new_dir) = (at(call.old_dir), at(call.new_dir));
                let call = fs::Rename { old_dir, new_dir, ..call.clone() };
                unless_gone(self.made_alone(lease, call).await.map(drop))
            }
            Change::Link(call) => {
                let (dir, existing) = (at(call.dir), at(call.existing));
                let call = fs::Link { dir, existing, ..call.clone() };
                let made = match has_its_data(lease, entry) {
                    Ok(()) => self.made_alone(lease, call.clone()).await.map(drop),
                    error => error,
                };
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

    /// Makes a change for which there is no single call: as a list of it alone.
    async fn listed_alone(&self, lease: &Lease, change: Change) -> Result<ChangeReply> {
        let changes = fs::Changes::first_of(std::iter::once(change));
        let answered = self.made_alone(lease, fs::ChangeList { volume: lease.volume.id, changes }).await?;
        let refused = VenusError::new(ErrorKind::of_abort(answered.code), "ChangeList").of(lease.dir.fid);
        answered.done.into_vec().pop().ok_or(refused)
    }

    /// Notes the object that was made, unless a list whose reply was lost has made the one with the lent fid.
    async fn or_by_list(&self, lease: &Lease, entry: &Entry, made: Result<Fid>) -> Result<()> {
        match made {
            Ok(fid) => {
                lease.replace(entry.object, fid);
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::Exists => {
                match self.made_alone(lease, fs::FetchStatus { fid: entry.vnode.key.fid }).await {
                    Ok(_) => Ok(()),
                    Err(other) if may_be_sent_again(&other) => Err(other),
                    Err(_) => Err(error),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Makes a file with its data.
    async fn create_alone(
        &self,
        lease: &Lease,
        entry: &Entry,
        create: fs::CreateFile,
        data: &SmallData,
        unstored: &mut Vec<Unstored>,
    ) -> Result<()> {
        let small = fs::CreateSmall { create: create.clone(), data: data.clone() };
        match self.listed_alone(lease, Change::CreateFile(small)).await {
            Ok(ChangeReply::CreateFile(made)) => self.or_by_list(lease, entry, Ok(made.fid)).await,
            // No server of ours: it lends leases and knows no lists.
            Ok(_) => self.create_first(lease, entry, create, data, unstored).await,
            Err(error) if error.kind == ErrorKind::NotSupported => {
                self.create_first(lease, entry, create, data, unstored).await
            }
            Err(error) => self.or_by_list(lease, entry, Err(error)).await,
        }
    }

    /// Makes a file whose data is stored afterwards.
    async fn create_first(
        &self,
        lease: &Lease,
        entry: &Entry,
        create: fs::CreateFile,
        data: &SmallData,
        unstored: &mut Vec<Unstored>,
    ) -> Result<()> {
        let time = create.status.mod_time;
        let made = self.made_alone(lease, create).await;
        if let Ok(made) = &made
            && !data.is_empty()
        {
            let data = bytes_of(data);
            unstored.push(self.unstored(entry, made.fid, made.status.data_version, (data, time)));
        }
        self.or_by_list(lease, entry, made.map(|reply| reply.fid)).await
    }

    /// Stores a whole file by a single call, whatever others have stored meanwhile.
    async fn store_whole_alone(
        &self,
        lease: &Lease,
        entry: &Entry,
        store: &WholeStore,
        unstored: &mut Vec<Unstored>,
    ) -> Result<()> {
        let store = WholeStore { fid: lease.in_place_of(store.fid), ..store.clone() };
        match self.send_store(lease, &store, None).await.result {
            Err(error) if !may_be_sent_again(&error) => {
                self.is_unstored(lease, entry, &store, unstored);
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    /// The server has not taken the data of a file.
    pub(super) fn is_unstored(
        &self,
        lease: &Lease,
        entry: &Entry,
        store: &WholeStore,
        unstored: &mut Vec<Unstored>,
    ) {
        lease.note_unstored(entry.vnode.key);
        let data = (store.data.clone(), store.status.mod_time);
        unstored.push(self.unstored(entry, store.fid, store.expected, data));
    }

    fn unstored(
        &self,
        entry: &Entry,
        fid: Fid,
        version: DataVersion,
        (data, time): (Bytes, Option<UnixSeconds>),
    ) -> Unstored {
        let vnode = self.vnode(Key::new(entry.vnode.key.cell, fid));
        Unstored { vnode, user: entry.user, version, data, time }
    }

    /// What was decided of an object and its directory is not known to be so.
    pub(super) fn forget_decided(&self, lease: &Lease, entry: &Entry) {
        entry.dirs.iter().for_each(|(dir, _)| self.forget_copy(dir));
        if let Some(unlinked) = entry.unlinked.and_then(|key| self.vnodes.peek(key)) {
            self.distrust(&unlinked);
            self.invalidate(unlinked.key);
        }
        let key = entry.vnode.key;
        if entry.makes_object() && lease.in_place_of(key.fid) != key.fid {
            entry.vnode.state().is_gone = true;
            self.note_removed(&entry.vnode);
        } else {
            self.distrust(&entry.vnode);
        }
        self.files.drop_decided(&entry.vnode);
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
        let (dir, change) = (lease.dir.fid, &entry.decided);
        tracing::error!(%error, %dir, ?change, "a change that was decided under a lease could not be made");
        let key = entry.vnode.key;
        if let Some((data, time)) = data_of(change).filter(|(data, _)| !data.is_empty()) {
            let aside = self.files.set_bytes_aside(key, self.context.user, data, time, error).await;
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

    /// Stores data that the server did not take with the other changes; what it does not take now either is kept as after a close.
    pub(super) async fn store_unstored(&self, unstored: Unstored) {
        let Unstored { vnode, user, version, data, time } = unstored;
        let me = self.as_user(user);
        let data = match me.files.unsaved_data(&vnode, user, version, data, time).await {
            Ok(data) => data,
            Err(full) => {
                tracing::error!(%full, fid = %vnode.key.fid, "data is lost: the server and the cache do not take it");
                return;
            }
        };
        match me.store(&vnode, &data, StoreReason::Close).await {
            Ok(()) => me.retire(&vnode, &data, user).await,
            Err(error) if is_final(error.kind) => me.give_up_data(&vnode, &error).await,
            Err(error) => {
                me.files.note_failure(vnode.key, &error);
                me.keep_unsaved(&vnode, &data).await;
            }
        }
    }
}

/// The bytes of a file in a change, and their time.
fn data_of(decided: &Decided) -> Option<(Bytes, Option<UnixSeconds>)> {
    match decided {
        Decided::Change(Change::CreateFile(small)) => {
            Some((bytes_of(&small.data), small.create.status.mod_time))
        }
        Decided::Change(Change::Store(store)) => Some((bytes_of(&store.data), store.status.mod_time)),
        Decided::Store(store) => Some((store.data.clone(), store.status.mod_time)),
        Decided::Change(_) => None,
    }
}

fn bytes_of(data: &SmallData) -> Bytes {
    Bytes::copy_from_slice(data.as_bytes())
}

/// A name that is gone was removed: by the list whose reply was lost, or by others.
fn unless_gone(made: Result<()>) -> Result<()> {
    match made {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A file whose data was not taken keeps the names that it has: the new one may be that of a file with data.
fn has_its_data(lease: &Lease, entry: &Entry) -> Result<()> {
    let kept = entry.concerns.iter().filter(|key| entry.unlinked != Some(**key));
    match kept.into_iter().find(|key| lease.is_unstored(**key)) {
        Some(file) => Err(VenusError::new(ErrorKind::NoSpace, "StoreData").of(file.fid)),
        None => Ok(()),
    }
}
