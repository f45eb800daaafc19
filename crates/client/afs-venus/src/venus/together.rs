//! Changes of names that wait at the same moment, sent as one ChangeList (docs/protocol/extensions.md "ChangeList").
//!
//! A list is made once, however often it is sent. A change that it has not made goes in a list of its own, whose outcome is that of its program; at a
//! server of another maker by its single call.

use std::sync::Arc;

use afs_wire::fs::Change;
use afs_wire::ids::DataVersion;

use super::listed::Listed;
use super::once::{ByList, Known};
use crate::calls::CallReply;
use crate::error::VenusError;
use crate::key::Key;
use crate::location::Volume;
use crate::rounds::{Seat, Sending, Step, Wish};
use crate::venus::Venus;
use crate::vnode::Vnode;

/// Outcome of a change of names.
pub(super) struct Changed<T> {
    pub result: crate::error::Result<CallReply<T>>,
    /// An earlier attempt may have been executed although no reply came.
    pub doubt: Option<Doubt>,
}

/// That a single call may have been executed although no reply came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// The directory's version before it.
    before: Option<DataVersion>,
}

impl Doubt {
    /// True if the change in doubt, and no other, can have made the directory this version.
    pub fn explains(self, after: DataVersion) -> bool {
        self.before.is_some_and(|before| before.next() == after)
    }
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
            return self.change_alone(dir, volume, request).await;
        }
        let mut step = seat.submit(request.clone().into_change()).await;
        loop {
            match step {
                Step::Send(sending) => {
                    self.send_list_apart(dir, volume, sending);
                    step = seat.next().await;
                }
                Step::Over(outcome) => {
                    let result = outcome.map_err(|error| VenusError { operation: R::NAME, ..error });
                    let result = result.and_then(|answered| self.shown::<R>(dir, answered));
                    return Changed { result, doubt: None };
                }
                Step::Single => return self.change_alone(dir, volume, request).await,
            }
        }
    }

    /// As a list of it alone, or by the single call at a server that knows no lists.
    async fn change_alone<R: Listed>(
        &self,
        dir: &Vnode,
        volume: &Arc<Volume>,
        request: R,
    ) -> Changed<R::Reply>
    where
        R::Reply: Send,
    {
        let about = concerned_by(dir.key, &request);
        let changed = match self.change_by_list(dir, volume, about.as_deref(), &request).await {
            ByList::Is(result) => Changed { result, doubt: None },
            ByList::IsNot { may_be_made } => {
                let before = dir.state().status.map(|status| status.data_version);
                let outcome = self.call_about(volume, about.as_deref(), request).await;
                let doubt = (may_be_made || outcome.maybe_executed).then_some(Doubt { before });
                Changed { result: outcome.result, doubt }
            }
        };
        if changed.result.is_ok() && self.limits.leases {
            self.leases.note_change(dir.key);
        }
        changed
    }

    /// Sends the changes of a round in a task of its own: they are not those of one program, which may give up.
    fn send_list_apart(&self, dir: &Arc<Vnode>, volume: &Arc<Volume>, sending: Sending) {
        let (me, dir, volume) = (self.as_user(self.context.user), dir.clone(), volume.clone());
        self.env.spawn(Box::pin(async move { me.send_list(&dir, &volume, sending).await }));
    }

    /// Sends them until it is known which were made, as long as a program waits for a server.
    async fn send_list(&self, dir: &Vnode, volume: &Arc<Volume>, sending: Sending) {
        let Some(known) = Known::of(volume, self.now()) else { return sending.answered(Vec::new()) };
        let changes = sending.list();
        let outcome = self.send_in_a_series(dir, volume, None, changes).await;
        match outcome.result {
            Ok(answered) => {
                let made = answered.value.done.iter().cloned().enumerate();
                sending.answered(made.map(|(at, reply)| answered.with(reply, at > 0)).collect());
            }
            Err(error) if known.learns(&error, self.now()) => sending.answered(Vec::new()),
            // The server has refused all of it.
            Err(error) if error.code.is_some() && !outcome.maybe_executed => sending.answered(Vec::new()),
            Err(error) => sending.failed(&error),
        }
    }
}

/// The objects that a change concerns; `None` if others may be among them, by their names.
fn concerned_by<R: Listed>(dir: Key, request: &R) -> Option<Vec<Key>> {
    match request.clone().into_change() {
        Change::CreateFile(_) | Change::MakeDir(_) | Change::Symlink(_) => Some(vec![dir]),
        _ => None,
    }
}
