//! Table of store tickets: handles of stores that have begun and not ended, between calls.
//!
//! A store has three steps: it begins, its bytes arrive, one transaction ends it. In between it belongs to no
//! call and no connection but to a ticket, which has an owner and an expiry time. An expired ticket is
//! dropped, with the reserved quota and space, and its bytes on the drive.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use afs_drive::DriveId;
use afs_rpc::{EnvExt, EnvRef, Identity, Instant};
use afs_volume::NewData;
use afs_wire::ids::Fid;
use parking_lot::Mutex;

use super::store_change::Change;
use super::stores::StoreUnderWay;
use crate::call_context::CallContext;
use crate::data_path::HolderId;
use crate::hosts::HostId;
use crate::volume_states::Served;

/// Minimum time for the client to end a store once all its bytes have arrived.
const END_TIME: Duration = Duration::from_secs(10);

/// Id of a store in progress. Unguessable.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TicketId(u128);

impl TicketId {
    /// The id as it travels.
    pub(crate) fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The id that a client names.
    pub(crate) fn from_bytes(bytes: [u8; 16]) -> Self {
        TicketId(u128::from_be_bytes(bytes))
    }
}

/// Who began a store, and alone may continue it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The caller of a call.
    Caller { host: HostId, identity: Identity },
    /// The holder of a capability.
    Holder(HolderId),
}

impl Owner {
    pub(super) fn of(context: &CallContext) -> Self {
        Owner::Caller { host: context.host.id(), identity: context.identity.clone() }
    }
}

/// A store in progress.
pub(crate) struct Ticket {
    pub(super) served: Served,
    pub(super) change: Change,
    pub(super) under_way: StoreUnderWay,
    /// Its bytes, complete and durable; `None` before they have arrived.
    pub(super) data: Option<NewData>,
    /// Of a store whose bytes are staged at drives; `None` for one whose bytes come here.
    pub(super) staging: Option<Staging>,
}

/// Terms of a store whose bytes a client stages at drives.
pub(super) struct Staging {
    /// How long it rests whatever its bytes do.
    pub(super) rests: Duration,
    /// Drives that did not answer when it began: it need not be there.
    pub(super) left_out: Vec<DriveId>,
}

impl Ticket {
    /// How long it may rest without a call working on it.
    fn time_left(&self) -> Duration {
        if let Some(staging) = &self.staging {
            return staging.rests;
        }
        let left = self.under_way.time_left();
        // A slow client has used up its time when its last bytes arrive, and must be able to end the store
        // all the same.
        if self.data.is_some() { left.max(END_TIME) } else { left }
    }
}

/// A ticket that no call is working on.
struct Waiting {
    ticket: Box<Ticket>,
    owner: Owner,
    since: Instant,
    until: Instant,
}

/// The tickets of a server. Their number is bounded by `Stores`.
pub(crate) struct Tickets {
    env: EnvRef,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: BTreeMap<TicketId, Waiting>,
    /// Whether a task watches for expired tickets.
    is_watched: bool,
}

impl Tickets {
    pub(crate) fn new(env: EnvRef) -> Arc<Self> {
        Arc::new(Tickets { env, state: Mutex::default() })
    }

    /// Adds a new ticket.
    pub(super) fn open(self: &Arc<Self>, owner: Owner, ticket: Box<Ticket>) -> TicketId {
        let id = TicketId(u128::from_le_bytes(self.env.random_bytes()));
        self.put(id, owner, ticket);
        id
    }

    /// Puts a ticket back, for as long as the progress of its store allows.
    pub(super) fn put(self: &Arc<Self>, id: TicketId, owner: Owner, ticket: Box<Ticket>) {
        let since = self.env.now();
        let until = since + ticket.time_left();
        let mut state = self.state.lock();
        state.waiting.insert(id, Waiting { ticket, owner, since, until });
        if !std::mem::replace(&mut state.is_watched, true) {
            drop(state);
            self.watch();
        }
    }

    /// Takes a ticket to work on it. `None` for a ticket that has ended, that another call is working on, or
    /// that another one owns.
    pub(super) fn take(&self, id: TicketId, owner: &Owner) -> Option<Box<Ticket>> {
        let mut state = self.state.lock();
        state.waiting.get(&id).filter(|waiting| waiting.owner == *owner)?;
        let Waiting { mut ticket, since, until, .. } = state.waiting.remove(&id)?;
        drop(state);
        let now = self.env.now();
        ticket.under_way.rested(now - since);
        (now < until).then_some(ticket)
    }

    /// What a room is for; `None` as by [`Tickets::take`], and for a store whose bytes come here.
    pub(super) fn room(&self, id: TicketId, owner: &Owner) -> Option<Fid> {
        let now = self.env.now();
        let state = self.state.lock();
        let waiting =
            state.waiting.get(&id).filter(|waiting| waiting.owner == *owner && now < waiting.until)?;
        waiting.ticket.staging.as_ref().map(|_| waiting.ticket.change.fid)
    }

    /// Drops tickets within a minute after their expiry, until there is none.
    fn watch(self: &Arc<Self>) {
        let (env, tickets) = (self.env.clone(), Arc::downgrade(self));
        self.env.spawn(Box::pin(async move {
            while let Some(next) = tickets.upgrade().and_then(|tickets| tickets.end_overdue()) {
                env.sleep_until(next).await;
            }
        }));
    }

    /// Drops expired tickets; returns the expiry of the next.
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

    /// Number of tickets that no call is working on.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.state.lock().waiting.len()
    }
}
