//! Changes of names that wait at the same moment, sent as one ChangeList (docs/protocol/extensions.md "ChangeList").
//!
//! A list is sent once. A change that it has not made, or of which no reply tells whether it was made, is made by its
//! single call, which decides, and tells its program why it fails.

use std::sync::Arc;

use afs_wire::error::AbortCode;
use afs_wire::fs::{self, Change, ChangeReply};
use afs_wire::ids::DataVersion;
use afs_wire::rpc::Request;

use crate::calls::{CallOutcome, CallReply};
use crate::error::{ErrorKind, VenusError};
use crate::key::Key;
use crate::location::Volume;
use crate::rounds::{Doubt, Seat, Sending, Step, Wish};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// A call that may also be a change of a list.
pub(super) trait Listed: Request + Clone {
    /// Whether it replaces what has the name.
    const REPLACES: bool = true;

    fn into_change(self) -> Change;

    /// Its reply; `None` if the server has answered another change.
    fn reply(reply: fs::ChangeReply) -> Option<Self::Reply>;
}

macro_rules! listed {
    ($($call:ident: $variant:ident by $change:expr),* $(,)?) => { $(
        impl Listed for fs::$call {
            fn into_change(self) -> Change {
                Change::$variant($change(self))
            }

            fn reply(reply: fs::ChangeReply) -> Option<Self::Reply> {
                match reply {
                    fs::ChangeReply::$variant(reply) => Some(reply),
                    _ => None,
                }
            }
        }
    )* };
}

listed! {
    CreateFile: CreateFile by |create| fs::CreateSmall { create, data: fs::SmallData::default() },
    MakeDir: MakeDir by std::convert::identity,
    Symlink: Symlink by std::convert::identity,
    Link: Link by std::convert::identity,
    RemoveFile: RemoveFile by std::convert::identity,
    RemoveDir: RemoveDir by std::convert::identity,
    Rename: Rename by std::convert::identity,
}

/// Only for who is alone in the directory: no list has it. Under a lease the names are decided here, and none is in the way.
impl Listed for fs::RenameNew {
    const REPLACES: bool = false;

    fn into_change(self) -> Change {
        let Self { old_dir, old_name, new_dir, new_name } = self;
        Change::Rename(fs::Rename { old_dir, old_name, new_dir, new_name })
    }

    fn reply(reply: fs::ChangeReply) -> Option<Self::Reply> {
        fs::Rename::reply(reply)
    }
}

/// Outcome of a change of names.
pub(super) struct Changed<T> {
    pub result: crate::error::Result<CallReply<T>>,
    /// An earlier attempt may have been executed although no reply came.
    pub doubt: Option<Doubt>,
}

impl Venus {
    /// Waits for a place among those who change other names of a directory, while nobody else changes any.
    pub(super) async fn enter(&self, dir: &Vnode, names: &[&[u8]]) -> Seat {
        // What is decided here is decided by one after the other.
        let is_leased = self.leases.known(dir.key).is_some();
        let names = (!is_leased).then(|| names.iter().map(|name| name.to_vec()).collect());
        self.rounds.enter(dir.key, Wish { user: self.context.user, names }).await
    }

    /// The same, while nobody else changes names of the directory at all.
    pub(super) async fn enter_alone(&self, dir: &Vnode) -> Seat {
        self.rounds.enter(dir.key, Wish { user: self.context.user, names: None }).await
    }

    /// Makes the change of names for which the place was taken, together with those of the others of the round.
    pub(super) async fn change_names<R: Listed>(
        &self,
        seat: &Seat,
        dir: &Arc<Vnode>,
        volume: &Arc<Volume>,
        request: R,
    ) -> Changed<R::Reply>
    where
        R::Reply: Send,
    {
        if seat.is_alone() {
            if let Some(decided) =
                self.decide(dir, volume, R::REPLACES, || request.clone().into_change()).await
                && let Some(reply) = R::reply(decided.value.clone())
            {
                return Changed { result: Ok(decided.with(reply, false)), doubt: None };
            }
            return self.change_alone(seat, dir, volume, request, None).await;
        }
        let mut step = seat.submit(request.clone().into_change()).await;
        loop {
            match step {
                Step::Send(sending) => {
                    self.send_list_apart(dir, volume, sending);
                    step = seat.next().await;
                }
                Step::Made(answered) => {
                    let reply = R::reply(answered.value.clone());
                    let result = reply.map(|reply| answered.with(reply, answered.follows)).ok_or_else(|| {
                        // Something may have been made.
                        self.distrust(dir);
                        VenusError::new(ErrorKind::Protocol, R::NAME).of(dir.key.fid)
                    });
                    return Changed { result, doubt: None };
                }
                Step::Single(doubt) => return self.change_alone(seat, dir, volume, request, doubt).await,
            }
        }
    }

    /// By the single call.
    async fn change_alone<R: Listed>(
        &self,
        seat: &Seat,
        dir: &Vnode,
        volume: &Arc<Volume>,
        request: R,
        doubt: Option<Doubt>,
    ) -> Changed<R::Reply>
    where
        R::Reply: Send,
    {
        let itself = Doubt { before: version_of(dir), changes: 1 };
        let about = concerned_by(dir.key, &request);
        let outcome: CallOutcome<R::Reply> = self.call_about(volume, about.as_deref(), request).await;
        if outcome.result.is_ok() {
            seat.was_not_made();
            if self.limits.leases {
                self.leases.note_change(dir.key);
            }
        }
        let doubt = doubt.or(outcome.maybe_executed.then_some(itself));
        Changed { result: outcome.result, doubt }
    }

    /// Sends the changes of a round in a task of its own: they are not those of one program, which may give up.
    fn send_list_apart(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, sending: Sending) {
        let (me, dir, volume) = (self.without_retry(), dir.clone(), volume.clone());
        self.env.spawn(Box::pin(async move { me.send_list(&dir, &volume, sending).await }));
    }

    /// Sends them once, without waiting for a server.
    async fn send_list(&self, dir: &Vnode, volume: &Arc<Volume>, sending: Sending) {
        let sites = volume.sites(self.now());
        if !sites.iter().all(|server| server.may_know_our_calls(self.now())) {
            return sending.answered(Vec::new());
        }
        let resets: Vec<u64> = sites.iter().map(|server| server.reset.get()).collect();
        let changes = sending.list();
        changes.iter().for_each(|change| self.counters.listed(name_of(change)));
        sending.begin(Doubt { before: version_of(dir), changes: changes.len() as u64 });
        let list = fs::ChangeList { volume: volume.id, changes };
        let outcome = self.call_tried(volume, list).await;
        match outcome.result {
            Ok(answered) => {
                let made = answered.value.done.iter().cloned().enumerate();
                sending.answered(made.map(|(at, reply)| answered.with(reply, at > 0)).collect());
            }
            Err(error) if error.code == Some(AbortCode::RXGEN_OPCODE) => {
                if let ([server], [reset]) = (&sites[..], &resets[..]) {
                    server.no_calls_of_ours.note(self.now(), *reset);
                }
                sending.answered(Vec::new());
            }
            // The server has refused all of it.
            Err(error) if error.code.is_some() && !outcome.maybe_executed => sending.answered(Vec::new()),
            Err(error) => tracing::debug!(%error, "it is not known which changes of a list were made"),
        }
    }
}

/// Name of the call that a change would be by itself.
pub(super) fn name_of(change: &Change) -> &'static str {
    match change {
        Change::CreateFile(_) => fs::CreateFile::NAME,
        Change::MakeDir(_) => fs::MakeDir::NAME,
        Change::Symlink(_) => fs::Symlink::NAME,
        Change::Link(_) => fs::Link::NAME,
        Change::Store(_) => fs::StoreData64::NAME,
        Change::StoreStatus(_) => fs::StoreStatus::NAME,
        Change::RemoveFile(_) => fs::RemoveFile::NAME,
        Change::RemoveDir(_) => fs::RemoveDir::NAME,
        Change::Rename(_) => fs::Rename::NAME,
    }
}

/// Name of the call to which a reply would be one by itself.
pub(super) fn name_of_reply(reply: &ChangeReply) -> &'static str {
    match reply {
        ChangeReply::CreateFile(_) => fs::CreateFile::NAME,
        ChangeReply::MakeDir(_) => fs::MakeDir::NAME,
        ChangeReply::Symlink(_) => fs::Symlink::NAME,
        ChangeReply::Link(_) => fs::Link::NAME,
        ChangeReply::Store(_) => fs::StoreData64::NAME,
        ChangeReply::StoreStatus(_) => fs::StoreStatus::NAME,
        ChangeReply::RemoveFile(_) => fs::RemoveFile::NAME,
        ChangeReply::RemoveDir(_) => fs::RemoveDir::NAME,
        ChangeReply::Rename(_) => fs::Rename::NAME,
    }
}

/// The objects that a change concerns; `None` if others may be among them, by their names.
fn concerned_by<R: Listed>(dir: Key, request: &R) -> Option<Vec<Key>> {
    match request.clone().into_change() {
        Change::CreateFile(_) | Change::MakeDir(_) | Change::Symlink(_) => Some(vec![dir]),
        _ => None,
    }
}

/// Version of the directory that is known here.
fn version_of(dir: &Vnode) -> Option<DataVersion> {
    dir.state().status.map(|status| status.data_version)
}
