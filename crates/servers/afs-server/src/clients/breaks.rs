//! Delivery of callback breaks: a bounded number of messages at a time for each host, up to 50 objects a
//! message. A host that does not reply within the break time-out, counted from the change, is marked down and
//! gets the break when it is back; a host that needed all of that time, or nearly, is granted no promises for
//! a while (see [`Misses`](crate::hosts)).

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use afs_rpc::future::{Either, select};
use afs_rpc::sync::oneshot;
use afs_rpc::{CallError, EnvExt, Instant};
use afs_wire::fs::FIDS_MAX;
use afs_wire::ids::{Fid, VolumeId};
use parking_lot::MutexGuard;

use super::Clients;
use super::late_breaks::{LATE, LateBreak};
use crate::data_path::Telling;
use crate::hosts::{Host, HostId};

/// Messages in flight to one host. Below this number a change does not wait for another change's message.
const MESSAGES_MAX: usize = 3;

/// Breaks waiting for a sender of their host.
#[derive(Default)]
pub(crate) struct BreakQueue {
    waiting: VecDeque<Waiting>,
    /// Senders running.
    senders: usize,
}

struct Waiting {
    fid: Fid,
    since: Instant,
    /// Notified when the host has replied, or was found dead.
    done: Option<oneshot::Sender<()>>,
}

/// Breaks in progress.
#[derive(Default)]
#[must_use = "what was promised is broken only when the hosts have answered"]
pub struct Breaks {
    answers: Vec<oneshot::Receiver<()>>,
}

impl Breaks {
    /// Waits until every host has replied, or is marked down with the break recorded for later.
    pub async fn answered(self) {
        for answer in self.answers {
            // A dropped sender means that its host was removed: it holds no promises.
            let _ = answer.await;
        }
    }

    /// Waits for drives too, which are told at the same time.
    pub(crate) fn and_told(mut self, telling: Telling) -> Breaks {
        self.answers.extend(telling.into_answers());
        self
    }

    /// Adds further breaks to wait for.
    pub fn and(mut self, others: Breaks) -> Breaks {
        self.answers.extend(others.answers);
        self
    }
}

impl Clients {
    /// Starts to notify every host but `except` that an object has changed.
    pub fn start_breaks(self: &Arc<Self>, fid: Fid, except: Option<HostId>) -> Breaks {
        let mut breaks = Breaks::default();
        for host in self.callbacks.start_break(fid, except) {
            self.queue_break(fid, host, &mut breaks);
        }
        breaks
    }

    /// Notifies every host with a promise in a volume that all of it changed; no caller waits for the
    /// replies. A host that is down is reset when it is back.
    pub fn break_volume(self: &Arc<Self>, volume: VolumeId) {
        for id in self.callbacks.forget_volume(volume) {
            let Some(host) = self.hosts.get(id) else { continue };
            self.break_whole(&host, Fid::whole_volume(volume));
        }
    }

    /// Notifies a host that rights of its users may have changed; nobody waits for the reply.
    pub(super) fn break_rights(self: &Arc<Self>, host: &Arc<Host>) {
        self.break_whole(host, Fid::RIGHTS);
    }

    fn break_whole(self: &Arc<Self>, host: &Arc<Host>, fid: Fid) {
        match host.is_down() {
            true => self.require_reset(host),
            false => self.enqueue(host, Waiting { fid, since: self.env.now(), done: None }),
        }
    }

    pub(super) fn queue_break(self: &Arc<Self>, fid: Fid, host: HostId, breaks: &mut Breaks) {
        // A removed host holds no promises.
        let Some(host) = self.hosts.get(host) else { return };
        let (done, answer) = oneshot::channel();
        breaks.answers.push(answer);
        self.enqueue(&host, Waiting { fid, since: self.env.now(), done: Some(done) });
    }

    fn enqueue(self: &Arc<Self>, host: &Arc<Host>, waiting: Waiting) {
        let is_free = {
            let mut queue = queue(host);
            let repeated =
                waiting.done.is_none() && queue.waiting.iter().any(|other| other.fid == waiting.fid);
            if !repeated {
                queue.waiting.push_back(waiting);
            }
            let is_free = queue.senders < MESSAGES_MAX;
            queue.senders += usize::from(is_free);
            is_free
        };
        if is_free {
            let (clients, host) = (self.clone(), host.clone());
            self.env.spawn(Box::pin(async move { clients.send_breaks(&host).await }));
        }
    }

    async fn send_breaks(self: &Arc<Self>, host: &Arc<Host>) {
        loop {
            let batch = next_batch(host);
            let Some(first) = batch.first() else { return };
            let fids: Vec<Fid> = batch.iter().map(|waiting| waiting.fid).collect();
            self.send_batch(host, &fids, first.since).await;
            for done in batch.into_iter().filter_map(|waiting| waiting.done) {
                _ = done.send(());
            }
        }
    }

    /// Sends breaks, of which the first has waited since `since`.
    async fn send_batch(self: &Arc<Self>, host: &Arc<Host>, fids: &[Fid], mut since: Instant) {
        let full = self.timeouts.break_reply;
        loop {
            if self.delay_if_down(host, fids) {
                return;
            }
            let timeout = host.with(|state| state.misses.timeout(full, self.now()));
            let left = timeout.saturating_sub(self.env.now() - since);
            let notified = self.notify_in_time(host, fids, left).await
                || (!host.is_down()
                    && self.reach(host).await
                    && self.notify_in_time(host, fids, timeout).await);
            if notified {
                if self.env.now() - since > full / 2 {
                    self.note_miss(host);
                }
                for fid in fids {
                    self.callbacks.broken(*fid, host.id());
                }
                return;
            }
            self.give_up(host);
            // A host that comes back before the next check has its full time from that moment.
            since = self.env.now();
        }
    }

    async fn notify_in_time(&self, host: &Arc<Host>, fids: &[Fid], left: Duration) -> bool {
        self.in_time(host, left, self.notify_breaks(host, fids, left)).await
    }

    /// Whether a host takes a message. Gives up after `left`, or as soon as another message finds the host dead, or a host
    /// that may be the same.
    pub(super) async fn in_time(
        &self,
        host: &Arc<Host>,
        left: Duration,
        message: impl Future<Output = Result<(), CallError>>,
    ) -> bool {
        let went_down = host.went_down.notified();
        if left.is_zero() || host.is_down() {
            return false;
        }
        let mut notification = pin!(select(message, went_down));
        let notified = match select(notification.as_mut(), self.env.sleep(LATE)).await {
            Either::Left(notified) => notified,
            Either::Right(()) => match LateBreak::new(self, host) {
                (_late, None) => notification.await,
                (_late, Some(given_up)) => match select(notification, given_up).await {
                    Either::Left(notified) => notified,
                    Either::Right(()) => return false,
                },
            },
        };
        matches!(notified, Either::Left(Ok(())))
    }

    /// A host that does not take its messages is unreachable.
    pub(super) fn give_up(&self, host: &Host) {
        if host.mark_down() {
            tracing::info!(host = %host.destination(), "a client does not take its broken callbacks");
            self.note_miss(host);
            self.give_up_same_address(host);
        }
    }

    /// Tells a client that a lock is free for it. Returns when it has replied, or does not in the time of a broken promise:
    /// nothing is owed to it then.
    pub(crate) async fn tell_lock_free(self: &Arc<Self>, fid: Fid, host: HostId) {
        let Some(host) = self.hosts.get(host) else { return };
        let timeout = host.with(|state| state.misses.timeout(self.timeouts.break_reply, self.now()));
        self.in_time(&host, timeout, self.notify_lock_free(&host, fid, timeout)).await;
    }

    /// Breaks the promise of one host on an object; nobody waits for the reply.
    pub(super) fn break_to(self: &Arc<Self>, fid: Fid, host: &Arc<Host>) {
        if self.callbacks.start_break_to(fid, host.id()) {
            self.queue_break(fid, host.id(), &mut Breaks::default());
        }
    }

    /// Counts a missed or late break: the host is granted no promises for a while, and a host that appears at
    /// the same address without authenticating starts with the same record.
    pub(super) fn note_miss(&self, host: &Host) {
        let now = self.now();
        host.with(|state| state.misses.missed(now));
        if !host.is_authenticated() {
            self.addresses.lock().missed(host.destination().ip(), now);
        }
    }

    /// Whether the host is down; its breaks are then recorded for later. Runs under the host's lock, as in
    /// [`Clients::resume`]: either that finds the recorded breaks, or this finds the host up.
    fn delay_if_down(&self, host: &Arc<Host>, fids: &[Fid]) -> bool {
        let (down, whole_volume) = host.with(|state| {
            if state.down {
                for fid in fids {
                    self.callbacks.delay(*fid, host.id());
                }
            }
            (state.down, fids.iter().any(|fid| fid.vnode.0 == 0))
        });
        if down && whole_volume {
            self.require_reset(host);
        }
        down
    }

    fn require_reset(&self, host: &Arc<Host>) {
        host.with(|state| state.reset = false);
        self.callbacks.forget_host(host.id());
    }
}

/// Takes as many breaks as fit into one message; ends this sender when none is waiting.
fn next_batch(host: &Host) -> Vec<Waiting> {
    let mut queue = queue(host);
    let count = queue.waiting.len().min(FIDS_MAX);
    let batch: Vec<Waiting> = queue.waiting.drain(..count).collect();
    queue.senders -= usize::from(batch.is_empty());
    batch
}

fn queue(host: &Host) -> MutexGuard<'_, BreakQueue> {
    host.queue.lock()
}
