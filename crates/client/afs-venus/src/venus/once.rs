//! Lists of changes that are made once: sent as the next one of a series, the same each time until a reply comes
//! (docs/protocol/extensions.md "ChangeList").

use std::sync::Arc;

use afs_rpc::{EnvExt, Instant};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{self, ChangeReply};
use afs_wire::ids::Fid;

use super::Venus;
use super::listed::{Listed, name_of};
use crate::calls::{CallOutcome, CallReply};
use crate::error::{ErrorKind, Result, VenusError};
use crate::key::Key;
use crate::location::{Server, Volume};
use crate::rounds::Series;
use crate::vnode::Vnode;

impl Venus {
    /// Makes one change as a list, once.
    pub(super) async fn change_by_list<R: Listed>(
        &self,
        dir: &Vnode,
        volume: &Arc<Volume>,
        about: Option<&[Key]>,
        request: &R,
    ) -> ByList<R::Reply> {
        let Some(known) = Known::of(volume, self.now()).filter(|_| R::REPLACES) else {
            return ByList::IsNot { may_be_made: false };
        };
        let changes = fs::Changes::first_of([request.clone().into_change().into()]);
        let outcome = self.send_in_a_series(dir, volume, about, changes).await;
        let answered = match outcome.result {
            Ok(answered) => answered,
            Err(error) if known.learns(&error, self.now()) || is_unknown(&error) => {
                return ByList::IsNot { may_be_made: outcome.maybe_executed };
            }
            Err(error) => return ByList::Is(Err(VenusError { operation: R::NAME, ..error })),
        };
        match answered.value.done.first().cloned() {
            Some(reply) => ByList::Is(self.shown::<R>(dir, answered.with(reply, answered.follows))),
            None => ByList::Is(Err(VenusError::new(ErrorKind::Protocol, R::NAME).of(dir.key.fid))),
        }
    }

    /// The reply to a change that was made. If the list was made before, others may have removed since what it is about.
    pub(super) fn shown<R: Listed>(
        &self,
        dir: &Vnode,
        answered: CallReply<ChangeReply>,
    ) -> Result<CallReply<R::Reply>> {
        let reply = if is_shown(&answered.value) { R::reply(answered.value.clone()) } else { None };
        reply.map(|reply| answered.with(reply, answered.follows)).ok_or_else(|| {
            self.distrust(dir);
            let kind = if is_shown(&answered.value) { ErrorKind::Protocol } else { ErrorKind::Stale };
            VenusError::new(kind, R::NAME).of(dir.key.fid)
        })
    }

    /// Sends a list until it is known which changes of it were made, as long as a program waits for a server.
    pub(super) async fn send_in_a_series(
        &self,
        dir: &Vnode,
        volume: &Arc<Volume>,
        about: Option<&[Key]>,
        changes: fs::Changes,
    ) -> CallOutcome<fs::ChangeListReply> {
        changes.iter().for_each(|listed| self.counters.listed(name_of(&listed.change)));
        let root = Key { fid: Fid::root(volume.id), ..dir.key };
        let kept = self.rounds.series.take(root);
        let new = || Series::new(self.env.random_u64());
        let outcome = self.send_as_next(root, volume, about, kept.unwrap_or_else(new), changes.clone()).await;
        match &outcome.result {
            // The volume has moved, or others have taken the place of the series, or the server counts otherwise: nothing was made in it.
            Err(error) if is_of_the_series(error) && !outcome.maybe_executed => {
                self.send_as_next(root, volume, about, new(), changes).await
            }
            _ => outcome,
        }
    }

    /// Sends a list as the next one of a series.
    async fn send_as_next(
        &self,
        root: Key,
        volume: &Arc<Volume>,
        about: Option<&[Key]>,
        Series { id, last }: Series,
        changes: fs::Changes,
    ) -> CallOutcome<fs::ChangeListReply> {
        let number = last.next();
        let list = fs::ChangeList { volume: volume.id, series: id, number, under_lease: false, changes };
        let outcome = self.call_about(volume, about, list).await;
        match &outcome.result {
            Ok(_) => self.rounds.series.give_back(root, Series { id, last: number }),
            // One that the server knows otherwise, or not at all, is not used again.
            Err(error) if is_of_the_series(error) || outcome.maybe_executed => {}
            Err(_) => self.rounds.series.give_back(root, Series { id, last }),
        }
        outcome
    }
}

/// What became of a change that was to be a list.
pub(super) enum ByList<T> {
    /// This: it was made once, or refused.
    Is(Result<CallReply<T>>),
    /// It goes by its single call, since the server knows no lists, or not the one to which no reply came.
    IsNot { may_be_made: bool },
}

/// The sites of a volume, all of which may know lists.
pub(super) struct Known(Vec<(Arc<Server>, u64)>);

impl Known {
    pub(super) fn of(volume: &Volume, now: Instant) -> Option<Known> {
        let sites = volume.sites(now);
        let all = sites.iter().all(|server| server.may_know_our_calls(now));
        all.then(|| {
            let with_reset = |server: Arc<Server>| {
                let reset = server.reset.get();
                (server, reset)
            };
            Known(sites.into_iter().map(with_reset).collect())
        })
    }

    /// Whether an error says that its server knows no lists. Where there is one site, that is noted.
    pub(super) fn learns(&self, error: &VenusError, now: Instant) -> bool {
        let is_unknown = error.code == Some(AbortCode::RXGEN_OPCODE);
        if let ([(server, reset)], true) = (&self.0[..], is_unknown) {
            server.no_calls_of_ours.note(now, *reset);
        }
        is_unknown
    }
}

/// Whether a server does not know the series of a list.
fn is_unknown(error: &VenusError) -> bool {
    error.code == Some(Errno::ENODATA.to_uae())
}

/// Whether a list may have been refused for its series or its number.
pub(in crate::venus) fn is_of_the_series(error: &VenusError) -> bool {
    is_unknown(error) || error.kind == ErrorKind::Invalid
}

/// Whether the server shows all that a reply is about. It does not if the list was made before, and others have removed something since.
fn is_shown(reply: &ChangeReply) -> bool {
    let statuses = match reply {
        ChangeReply::CreateFile(made) | ChangeReply::MakeDir(made) => [&made.status, &made.dir_status],
        ChangeReply::Symlink(made) => [&made.status, &made.dir_status],
        ChangeReply::Link(linked) => [&linked.status, &linked.dir_status],
        ChangeReply::Store(stored) | ChangeReply::StoreStatus(stored) => [&stored.status; 2],
        ChangeReply::RemoveFile(removed) | ChangeReply::RemoveDir(removed) => [&removed.dir_status; 2],
        ChangeReply::Rename(renamed) => [&renamed.old_dir_status, &renamed.new_dir_status],
    };
    statuses.into_iter().all(|status| status.error == AbortCode::OK)
}
