//! Tickets of stores: what holds a store that has begun and is not ended, between the calls that do so.
//!
//! A store has three steps: it is begun, its bytes come, it is ended by one transaction. Between them it belongs to no call and to
//! no connection, but to a ticket, which has an owner and an end. A ticket that is not taken up again in its time is gone, and with it the
//! quota and the room that were kept, and its bytes on the drive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::{EnvExt, EnvRef, Identity, Instant};
use afs_volume::NewData;
use parking_lot::Mutex;

use super::storing::Change;
use crate::hosts::HostId;
use crate::server::Visit;
use crate::stores::StoreUnderWay;
use crate::volume_states::Served;

/// What a client has at least for the end of a store, once all its bytes have come.
const END_TIME: Duration = Duration::from_secs(10);

/// Names a store in progress. Not to be guessed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TicketId(u128);

/// Who has begun a store, and alone may go on with it.
#[derive(PartialEq, Eq)]
struct Owner {
    host: HostId,
    identity: Identity,
}

impl Owner {
    fn of(visit: &Visit) -> Self {
        Owner { host: visit.host.id(), identity: visit.identity.clone() }
    }
}

/// A store that has begun.
pub(super) struct Ticket {
    pub(super) served: Served,
    pub(super) change: Change,
    pub(super) under_way: StoreUnderWay,
    /// Its bytes, all of them and durable; `None` before they have come.
    pub(super) data: Option<NewData>,
}

impl Ticket {
    /// For how long no call need work on it.
    fn time_left(&self) -> Duration {
        let left = self.under_way.time_left();
        // A slow client has used up its time when its last bytes come, and is to end the store all the same.
        if self.data.is_some() { left.max(END_TIME) } else { left }
    }
}

/// A ticket that no call works on.
struct Waiting {
    ticket: Box<Ticket>,
    owner: Owner,
    since: Instant,
    until: Instant,
}

/// The tickets of a server. How many there are `Stores` bounds.
pub(crate) struct Tickets {
    env: EnvRef,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<TicketId, Waiting>,
    /// Whether a task looks for those whose time is over.
    is_watched: bool,
}

impl Tickets {
    pub(crate) fn new(env: EnvRef) -> Arc<Self> {
        Arc::new(Tickets { env, state: Mutex::default() })
    }

    /// Holds a new ticket.
    pub(super) fn open(self: &Arc<Self>, visit: &Visit, ticket: Box<Ticket>) -> TicketId {
        let id = TicketId(u128::from_le_bytes(self.env.random_bytes()));
        self.put(id, visit, ticket);
        id
    }

    /// Holds a ticket for as long as what has come of its store allows.
    pub(super) fn put(self: &Arc<Self>, id: TicketId, visit: &Visit, ticket: Box<Ticket>) {
        let (owner, since) = (Owner::of(visit), self.env.now());
        let until = since + ticket.time_left();
        let mut state = self.state.lock();
        state.waiting.insert(id, Waiting { ticket, owner, since, until });
        if !std::mem::replace(&mut state.is_watched, true) {
            drop(state);
            self.watch();
        }
    }

    /// Takes a ticket to work on it. `None` for one that is over, that another call works on, or that another client has.
    pub(super) fn take(&self, id: TicketId, visit: &Visit) -> Option<Box<Ticket>> {
        let mut state = self.state.lock();
        state.waiting.get(&id).filter(|waiting| waiting.owner == Owner::of(visit))?;
        let Waiting { mut ticket, since, until, .. } = state.waiting.remove(&id)?;
        drop(state);
        let now = self.env.now();
        ticket.under_way.rested(now - since);
        (now < until).then_some(ticket)
    }

    /// Ends tickets at their time, or less than a minute after it, until there is none.
    fn watch(self: &Arc<Self>) {
        let (env, tickets) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            while let Some(next) = tickets.upgrade().and_then(|tickets| tickets.end_overdue()) {
                env.sleep_until(next).await;
            }
        }));
    }

    /// Ends those whose time is over; answers when that of the next is.
    fn end_overdue(&self) -> Option<Instant> {
        let now = self.env.now();
        let mut state = self.state.lock();
        let overdue: Vec<_> = state.waiting.extract_if(.., |_, waiting| waiting.until <= now).collect();
        let next = state.waiting.values().map(|waiting| waiting.until).min();
        state.is_watched = next.is_some();
        drop(state);
        for (_, Waiting { ticket, .. }) in overdue {
            tracing::debug!(fid = %ticket.change.fid, "a store was begun and not ended in its time");
        }
        next
    }

    /// How many no call works on.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.state.lock().waiting.len()
    }
}
