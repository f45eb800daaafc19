//! Objects that were decided under a lost lease, made by single calls, or known as made: by the list whose reply was lost, or by an earlier call of
//! this client to which no reply came.

use afs_wire::fs::{self, Change, ChangeReply, FileKind, SetStatus, Status};
use afs_wire::ids::{DataVersion, Fid};

use super::data::bytes_of;
use super::looking::Named;
use super::names::note_added;
use super::state::Loss;
use crate::error::{ErrorKind, Result};
use crate::leases::{Entry, Lease};
use crate::venus::Venus;
use crate::venus::leasing::may_be_sent_again;

/// What a single call has made.
struct Made {
    fid: Fid,
    version: DataVersion,
    /// Of its directory after the change.
    dir_status: Status,
}

impl Made {
    fn of(reply: &fs::CreateReply) -> Made {
        Made { fid: reply.fid, version: reply.status.data_version, dir_status: reply.dir_status }
    }
}

/// A new object, as it is right after its creation.
struct New {
    named: Named,
    kind: FileKind,
    length: Option<u64>,
    set: SetStatus,
}

impl New {
    /// Whether an object may be this one. Others can hardly have made one with the same time: that of the decision, when the name was this
    /// client's alone. The time of a directory is the server's; one that is empty holds nothing of others.
    fn is_like(&self, status: &Status, decided: Option<Status>) -> bool {
        let is_same_time = self.set.mod_time == Some(status.client_mod_time);
        let is_fresh = match self.kind {
            FileKind::Directory => status.link_count == 2 && status.data_version.0 <= 1,
            _ => is_same_time && status.link_count == 1,
        };
        is_fresh
            && status.kind == self.kind
            && self.length.is_none_or(|length| length == status.length)
            && self.set.mode.is_none_or(|mode| mode == status.mode)
            && decided.is_none_or(|decided| decided.owner == status.owner)
    }
}

impl Venus {
    /// Makes a file with its data.
    pub(super) async fn create_alone(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        small: &fs::CreateSmall,
    ) -> Result<()> {
        let create = fs::CreateFile { dir: loss.lease.in_place_of(small.create.dir), ..small.create.clone() };
        let small = fs::CreateSmall { create, data: small.data.clone() };
        let listed = self.listed_alone(loss, &[small.create.dir], Change::CreateFile(small.clone())).await;
        let made = match listed {
            Ok(ChangeReply::CreateFile(made)) => Ok(Made::of(&made)),
            Err(error) if error.kind != ErrorKind::NotSupported => Err(error),
            // No server of ours: it lends leases and knows no lists.
            Ok(_) | Err(_) => return self.create_first(loss, entry, &small).await,
        };
        let new = new_file(&small.create, small.data.len() as u64);
        self.made_or_known(loss, entry, &new, made).await.map(drop)
    }

    /// Makes a file whose data is stored afterwards.
    async fn create_first(&self, loss: &mut Loss<'_>, entry: &Entry, small: &fs::CreateSmall) -> Result<()> {
        let made = self.made_alone(loss, &[small.create.dir], small.create.clone()).await;
        let made = made.map(|reply| Made::of(&reply));
        let made = self.made_or_known(loss, entry, &new_file(&small.create, 0), made).await?;
        if let Some((fid, version)) = made.filter(|_| !small.data.is_empty()) {
            let data = (bytes_of(&small.data), small.create.status.mod_time);
            loss.unstored.push(self.unstored(entry, fid, version, data));
        }
        Ok(())
    }

    pub(super) async fn make_dir_alone(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        call: &fs::MakeDir,
    ) -> Result<()> {
        let call = fs::MakeDir { dir: loss.lease.in_place_of(call.dir), ..call.clone() };
        let (named, set) = ((call.dir, call.name.clone()), call.status);
        let new = New { named, kind: FileKind::Directory, length: None, set };
        let made = self.made_alone(loss, &[call.dir], call).await.map(|reply| Made::of(&reply));
        self.made_or_known(loss, entry, &new, made).await.map(drop)
    }

    pub(super) async fn symlink_alone(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        call: &fs::Symlink,
    ) -> Result<()> {
        let call = fs::Symlink { dir: loss.lease.in_place_of(call.dir), ..call.clone() };
        let (named, set) = ((call.dir, call.name.clone()), call.status);
        let length = Some(call.contents.as_bytes().len() as u64);
        let new = New { named, kind: FileKind::Symlink, length, set };
        let made = self.made_alone(loss, &[call.dir], call).await.map(|reply| Made {
            fid: reply.fid,
            version: reply.status.data_version,
            dir_status: reply.dir_status,
        });
        self.made_or_known(loss, entry, &new, made).await.map(drop)
    }

    /// Notes the object that a single call has made: this one, or an earlier one to which no reply came. Returns its fid and its version; `None`
    /// if the list whose reply was lost has made the object with the lent fid.
    async fn made_or_known(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        new: &New,
        made: Result<Made>,
    ) -> Result<Option<(Fid, DataVersion)>> {
        let (fid, version) = match made {
            Ok(made) => {
                note_added(loss, &new.named, made.fid, &made.dir_status);
                (made.fid, made.version)
            }
            Err(error) if error.kind == ErrorKind::Exists => {
                if self.status_of(loss.lease, entry.vnode.key.fid).await?.is_some() {
                    return Ok(None);
                }
                self.made_before(loss, entry, new).await?.ok_or(error)?
            }
            Err(error) => return Err(error),
        };
        loss.lease.fates(|fates| fates.replace(entry.object, fid));
        Ok(Some((fid, version)))
    }

    /// The object that an earlier call has made to which no reply came, and its version.
    async fn made_before(
        &self,
        loss: &mut Loss<'_>,
        entry: &Entry,
        new: &New,
    ) -> Result<Option<(Fid, DataVersion)>> {
        if !loss.lease.journal(|journal| journal.is_unanswered()) {
            return Ok(None);
        }
        let Some(fid) = self.object_of(loss, &new.named).await? else { return Ok(None) };
        let found = self.status_of(loss.lease, fid).await?;
        let decided = entry.vnode.state().status;
        let ours = found.filter(|found| new.is_like(found, decided));
        Ok(ours.map(|found| (fid, found.data_version)))
    }

    /// The status of an object; `None` if the server has none.
    pub(super) async fn status_of(&self, lease: &Lease, fid: Fid) -> Result<Option<Status>> {
        let call = self.calls.call(&self.context, &lease.volume, fs::FetchStatus { fid });
        match Box::pin(call).await.result {
            Ok(answered) => Ok(Some(answered.value.status)),
            Err(error) if may_be_sent_again(&error) => Err(error),
            Err(_) => Ok(None),
        }
    }
}

fn new_file(create: &fs::CreateFile, length: u64) -> New {
    let (named, set) = ((create.dir, create.name.clone()), create.status);
    New { named, kind: FileKind::File, length: Some(length), set }
}
