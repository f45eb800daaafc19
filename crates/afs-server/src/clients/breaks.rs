//! Breaking promises: one sender a host, up to 50 objects a message, and nobody waits for a dead client longer than
//! the patience for breaks.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard, PoisonError};

use afs_rpc::sync::oneshot;
use afs_wire::fs::FIDS_MAX;
use afs_wire::ids::{Fid, VolumeId};

use super::Clients;
use crate::hosts::{Host, HostId};

/// Breaks that wait for the sender of their host.
#[derive(Default)]
pub(crate) struct BreakQueue {
    waiting: VecDeque<Waiting>,
    sending: bool,
}

struct Waiting {
    fid: Fid,
    /// Told when the host has answered, or has been found dead.
    done: Option<oneshot::Sender<()>>,
}

/// Breaks on their way.
#[derive(Default)]
#[must_use = "what was promised is broken only when the hosts have answered"]
pub struct Breaks {
    answers: Vec<oneshot::Receiver<()>>,
}

impl Breaks {
    /// Waits until every host has answered, or is known to be dead and owed the break.
    pub async fn answered(self) {
        for answer in self.answers {
            // A sender that is gone is one whose host was removed: it holds no promises.
            let _ = answer.await;
        }
    }

    /// Adds others to wait for.
    pub fn and(mut self, others: Breaks) -> Breaks {
        self.answers.extend(others.answers);
        self
    }
}

impl Clients {
    /// Begins to tell every host but `except` that an object has changed.
    pub fn start_breaks(self: &Arc<Self>, fid: Fid, except: Option<HostId>) -> Breaks {
        let mut breaks = Breaks::default();
        for host in self.callbacks.start_break(fid, except) {
            self.queue_break(fid, host, &mut breaks);
        }
        breaks
    }

    /// Tells every host with a promise in a volume that all of it changed; nobody waits for the answers. A host that
    /// is down is reset when it comes back.
    pub fn break_volume(self: &Arc<Self>, volume: VolumeId) {
        for id in self.callbacks.forget_volume(volume) {
            let Some(host) = self.hosts.get(id) else { continue };
            if host.is_down() {
                self.owe_reset(&host);
            } else {
                self.enqueue(&host, Waiting { fid: Fid::whole_volume(volume), done: None });
            }
        }
    }

    pub(super) fn queue_break(self: &Arc<Self>, fid: Fid, host: HostId, breaks: &mut Breaks) {
        // A host that is gone holds nothing.
        let Some(host) = self.hosts.get(host) else { return };
        let (done, answer) = oneshot::channel();
        breaks.answers.push(answer);
        self.enqueue(&host, Waiting { fid, done: Some(done) });
    }

    fn enqueue(self: &Arc<Self>, host: &Arc<Host>, waiting: Waiting) {
        let idle = {
            let mut queue = queue(host);
            let repeated =
                waiting.done.is_none() && queue.waiting.iter().any(|other| other.fid == waiting.fid);
            if !repeated {
                queue.waiting.push_back(waiting);
            }
            !std::mem::replace(&mut queue.sending, true)
        };
        if idle {
            let (clients, host) = (self.clone(), host.clone());
            self.env.spawn(Box::pin(async move { clients.send_breaks(&host).await }));
        }
    }

    async fn send_breaks(self: &Arc<Self>, host: &Arc<Host>) {
        loop {
            let batch = next_batch(host);
            if batch.is_empty() {
                return;
            }
            let fids: Vec<Fid> = batch.iter().map(|waiting| waiting.fid).collect();
            self.send_batch(host, &fids).await;
            for done in batch.into_iter().filter_map(|waiting| waiting.done) {
                done.send(());
            }
        }
    }

    async fn send_batch(self: &Arc<Self>, host: &Arc<Host>, fids: &[Fid]) {
        loop {
            if self.owe_if_down(host, fids) {
                return;
            }
            let told = self.tell_breaks(host, fids).await.is_ok()
                || (self.reach(host).await && self.tell_breaks(host, fids).await.is_ok());
            if told {
                for fid in fids {
                    self.callbacks.broken(*fid, host.id());
                }
                return;
            }
            tracing::info!(host = %host.destination(), "a client does not take its broken callbacks");
            host.with(|state| state.down = true);
        }
    }

    /// Whether the host is down; its breaks are then owed to it. Under the host's lock, as in
    /// [`Clients::resume`]: either that finds what is owed, or this finds the host up.
    fn owe_if_down(&self, host: &Arc<Host>, fids: &[Fid]) -> bool {
        let (down, whole_volume) = host.with(|state| {
            if state.down {
                for fid in fids {
                    self.callbacks.delay(*fid, host.id());
                }
            }
            (state.down, fids.iter().any(|fid| fid.vnode.0 == 0))
        });
        if down && whole_volume {
            self.owe_reset(host);
        }
        down
    }

    fn owe_reset(&self, host: &Arc<Host>) {
        host.with(|state| state.reset = false);
        self.callbacks.forget_host(host.id());
    }
}

/// Takes what fits into one message; when nothing waits the sender is done.
fn next_batch(host: &Host) -> Vec<Waiting> {
    let mut queue = queue(host);
    let count = queue.waiting.len().min(FIDS_MAX);
    let batch: Vec<Waiting> = queue.waiting.drain(..count).collect();
    queue.sending = !batch.is_empty();
    batch
}

fn queue(host: &Host) -> MutexGuard<'_, BreakQueue> {
    host.queue.lock().unwrap_or_else(PoisonError::into_inner)
}
