//! Queue of names to invalidate in the kernel, without a deadlock with requests in progress.
//!
//! To invalidate a name the kernel takes the lock of its directory. A request in progress in that directory holds the
//! lock until its reply, which may need a server, which may itself wait until this client has invalidated the name. A
//! thread of its own therefore invalidates names one by one. When a request is in the way, the kernel is notified to
//! revalidate all names instead (INC_EPOCH), which takes no lock. That also takes every directory away from what is
//! mounted on it and works in it, so it is done where no wait ends by itself:
//!
//! * a request that **changes** names waits for the server's lock of the directory, which the server holds while it waits
//!   for this client: then at once, by the thread, before it waits for the lock; by a request that comes while the thread
//!   waits for it; and by a task that begins to wait for names while the thread waits and a request holds the lock
//!   ([`NameQueue::awaited`]);
//! * one that **reads** (a look-up, a listing) has its answer from a server that waits for this client too, unless that
//!   server holds a lock meanwhile: then when a task has waited for [`PATIENCE`].
//!
//! No task therefore waits for a lock without end. The kernel may still install names of an earlier READDIRPLUS reply after
//! that, and does not revalidate these. The thread therefore invalidates the same names one by one, too, once no request is in
//! progress in their directory; no task waits for that.

use crate::progress::Progress;
use afs_env::{EnvExt, EnvRef};
use fuser::INodeNo;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// How long a task waits for names in whose directory a request reads. Such a request needs a server's answer at most, if that server does
/// not wait for this client.
const PATIENCE: Duration = Duration::from_millis(20);

/// Notifications about names.
pub trait NameInvalidation: Send + Sync {
    /// Invalidates one name. Waits for the directory's lock.
    fn invalidate(&self, directory: INodeNo, name: &[u8]);

    /// Makes the kernel look up every name again before its next use. Never waits. Returns whether the kernel supports
    /// it: before 6.16 it does not, and the name is then invalidated after the reply to the request in progress.
    fn revalidate_all(&self) -> bool;
}

/// What a request in progress does with the names of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameAccess {
    /// It reads them.
    Reads,
    /// It adds, removes or replaces one.
    Changes,
}

/// Requests in progress in a directory.
#[derive(Clone, Copy, Default)]
struct Requests {
    reads: u32,
    changes: u32,
}

impl Requests {
    fn of(&mut self, access: NameAccess) -> &mut u32 {
        match access {
            NameAccess::Reads => &mut self.reads,
            NameAccess::Changes => &mut self.changes,
        }
    }

    fn is_none(self) -> bool {
        self.reads + self.changes == 0
    }
}

/// Names of one mount that are to be invalidated.
#[derive(Default)]
pub struct NameQueue {
    state: Mutex<State>,
    more: Condvar,
}

/// A name to invalidate.
#[derive(Debug)]
pub struct Step {
    number: u64,
    /// The directory, whose lock the kernel takes.
    pub directory: INodeNo,
    /// The name in it.
    pub name: Box<[u8]>,
    /// Whether a request was in progress in the directory for which the name is not to wait.
    in_the_way: bool,
}

/// Bounded by the names that Venus and [`crate::negative_entries::NegativeEntries`] hold: each is queued once, however often it is broken
/// while the thread waits.
#[derive(Default)]
struct State {
    work: Work,
    progress: Progress,
    /// Names with numbers up to this one were handled by revalidating all.
    revalidated: u64,
    /// Names with numbers up to this one do not wait for requests that read.
    hurried: u64,
    /// Directories with requests in progress.
    busy: HashMap<u64, Requests>,
    /// Names that were revalidated, by directory, while requests are in progress there.
    postponed: HashMap<u64, BTreeSet<Box<[u8]>>>,
    /// The directory whose lock the thread may be waiting for.
    current: Option<u64>,
}

/// Queue of names, each once.
#[derive(Default)]
struct Work {
    last: u64,
    queue: BTreeMap<u64, Queued>,
    /// The place of each name in the queue.
    places: HashMap<u64, HashMap<Box<[u8]>, u64>>,
}

/// Sequence number, directory and name.
type Queued = (u64, INodeNo, Box<[u8]>);

impl Work {
    /// The sequence number of a name, if it is queued.
    fn number(&self, directory: INodeNo, name: &[u8]) -> Option<u64> {
        let place = self.places.get(&directory.0)?.get(name)?;
        self.queue.get(place).map(|(number, ..)| *number)
    }

    /// Queues a name at the end. If it is queued before, it leaves that place.
    fn push(&mut self, number: u64, directory: INodeNo, name: Box<[u8]>) {
        self.last += 1;
        let places = self.places.entry(directory.0).or_default();
        if let Some(before) = places.insert(name.clone(), self.last) {
            self.queue.remove(&before);
        }
        self.queue.insert(self.last, (number, directory, name));
    }

    fn pop(&mut self) -> Option<Queued> {
        let (_, queued) = self.queue.pop_first()?;
        let (_, directory, name) = &queued;
        if let Some(places) = self.places.get_mut(&directory.0) {
            places.remove(name);
            if places.is_empty() {
                self.places.remove(&directory.0);
            }
        }
        Some(queued)
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

/// Number of a name for which no task waits.
const UNAWAITED: u64 = 0;

impl State {
    /// A name was revalidated: it is invalidated when no request is in progress in its directory.
    fn postpone(&mut self, directory: INodeNo, name: Box<[u8]>) {
        if self.busy.contains_key(&directory.0) {
            self.postponed.entry(directory.0).or_default().insert(name);
        } else {
            self.push_unawaited(directory, name);
        }
    }

    /// The last request in a directory has ended. Returns whether that queues names.
    fn resume(&mut self, directory: INodeNo) -> bool {
        let Some(names) = self.postponed.remove(&directory.0) else { return false };
        names.into_iter().for_each(|name| self.push_unawaited(directory, name));
        true
    }

    /// Queues a name for which no task waits, unless it is queued.
    fn push_unawaited(&mut self, directory: INodeNo, name: Box<[u8]>) {
        if self.work.number(directory, &name).is_none() {
            self.work.push(UNAWAITED, directory, name);
        }
    }

    /// Queues a name for which tasks may wait, unless it is queued so. One that was revalidated since has to be invalidated once more.
    fn push(&mut self, directory: INodeNo, name: Box<[u8]>) {
        let queued = self.work.number(directory, &name);
        if queued.is_none_or(|number| number == UNAWAITED || self.progress.is_done(number)) {
            let number = self.progress.add();
            self.work.push(number, directory, name);
        }
    }

    /// Whether a request is in progress in the directory for which a name with this number is not to wait.
    fn is_in_the_way(&self, directory: u64, number: u64) -> bool {
        let requests = self.busy.get(&directory).copied().unwrap_or_default();
        requests.changes > 0 || (requests.reads > 0 && number <= self.hurried)
    }

    /// Whether the thread may be waiting for a lock that such a request holds: nothing more is invalidated until the request
    /// has its reply.
    fn is_held_up(&self) -> bool {
        let last = self.progress.last();
        let first = if self.progress.is_done(self.hurried) { last } else { self.hurried };
        self.current
            .is_some_and(|directory| !self.progress.is_done(last) && self.is_in_the_way(directory, first))
    }

    /// Takes the next name from the queue.
    fn take(&mut self) -> Option<Step> {
        loop {
            let (number, directory, name) = self.work.pop()?;
            if number <= self.revalidated && self.busy.contains_key(&directory.0) {
                self.postpone(directory, name);
                continue;
            }
            let in_the_way = self.is_in_the_way(directory.0, number);
            self.current = (!in_the_way).then_some(directory.0);
            return Some(Step { number, directory, name, in_the_way });
        }
    }

    /// Whether no name is left to invalidate.
    fn is_idle(&self) -> bool {
        self.work.is_empty() && self.postponed.is_empty() && self.current.is_none()
    }
}

impl NameQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Queues names of a directory.
    pub fn add(&self, directory: INodeNo, names: impl IntoIterator<Item = Box<[u8]>>) {
        let mut state = self.lock();
        names.into_iter().for_each(|name| state.push(directory, name));
        self.more.notify_one();
    }

    /// A request in progress has renamed an object to this name. The kernel trusts the new name as it trusted the old
    /// one, possibly without end, but invalidations since the look-up named the old one. The new name is therefore
    /// invalidated too if there was an invalidation while the request was in progress (`is_stale`), or if names are
    /// still queued.
    pub(crate) fn renamed(&self, directory: INodeNo, name: &[u8], is_stale: bool) {
        if is_stale || !self.lock().is_idle() {
            self.add(directory, [name.into()]);
        }
    }

    /// A request begins that holds the directory's lock until its reply.
    pub fn enter(&self, directory: INodeNo, access: NameAccess, kernel: Option<&dyn NameInvalidation>) {
        *self.lock().busy.entry(directory.0).or_default().of(access) += 1;
        self.awaited(kernel);
    }

    /// A task waits from now on for all names queued so far. Returns the number of the last one. Also called by a
    /// request that comes while tasks wait.
    pub fn awaited(&self, kernel: Option<&dyn NameInvalidation>) -> u64 {
        let (last, is_held_up) = {
            let state = self.lock();
            let last = state.progress.last();
            (last, state.is_held_up())
        };
        if let Some(kernel) = kernel.filter(|_| is_held_up) {
            self.revalidate(kernel, last);
        }
        last
    }

    /// A task has waited long for the names up to a number: they do not wait for requests that read any longer.
    fn hurry(&self, number: u64, kernel: &dyn NameInvalidation) {
        {
            let mut state = self.lock();
            state.hurried = state.hurried.max(number);
        }
        self.awaited(Some(kernel));
    }

    /// The request has its reply.
    pub fn leave(&self, directory: INodeNo, access: NameAccess) {
        let mut state = self.lock();
        if let Some(requests) = state.busy.get_mut(&directory.0) {
            *requests.of(access) -= 1;
            if requests.is_none() {
                state.busy.remove(&directory.0);
                if state.resume(directory) {
                    self.more.notify_one();
                }
            }
        }
    }

    /// Revalidates all names queued so far with one notification, if the kernel supports it. In any case no task waits
    /// for them any longer: it could be the very request that holds the lock.
    fn revalidate(&self, kernel: &dyn NameInvalidation, last: u64) -> bool {
        let done = kernel.revalidate_all();
        let mut state = self.lock();
        if done {
            state.revalidated = state.revalidated.max(last);
        }
        let wakers = state.progress.done_up_to(last);
        drop(state);
        wakers.into_iter().for_each(std::task::Waker::wake);
        done
    }

    /// Loop of the thread: invalidates names until the mount ends.
    pub(crate) fn run(&self, kernel: &dyn NameInvalidation) {
        while let Some(step) = self.next() {
            if self.begin(&step, kernel) {
                kernel.invalidate(step.directory, &step.name);
                self.ended(&step);
            }
        }
    }

    /// Begins a step. Returns whether its name is to be invalidated now, which may wait for the directory's lock; otherwise a request
    /// holds that, all names were revalidated instead, and this one comes later.
    pub fn begin(&self, step: &Step, kernel: &dyn NameInvalidation) -> bool {
        let last = self.lock().progress.last();
        if step.in_the_way && self.revalidate(kernel, last) {
            self.lock().postpone(step.directory, step.name.clone());
            return false;
        }
        self.lock().current = Some(step.directory.0);
        true
    }

    /// The name of a step is invalidated.
    pub fn ended(&self, step: &Step) {
        let wakers = {
            let mut state = self.lock();
            state.current = None;
            state.progress.done_up_to(step.number)
        };
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Waits for the next name to invalidate. `None` when the mount has ended.
    fn next(&self) -> Option<Step> {
        let mut state = self.lock();
        loop {
            if state.progress.is_closed() {
                return None;
            }
            match state.take() {
                None => self.more.wait(&mut state),
                step => return step,
            }
        }
    }

    /// The next name to invalidate, if one is queued.
    pub fn try_next(&self) -> Option<Step> {
        self.lock().take()
    }

    /// Called when the mount ends.
    pub(crate) fn close(&self) {
        let wakers = self.lock().progress.close();
        self.more.notify_all();
        wakers.into_iter().for_each(std::task::Waker::wake);
    }

    /// Waits until everything up to a number is handled: a moment for requests that read, then for none.
    pub async fn settled(&self, number: u64, env: &EnvRef, kernel: &dyn NameInvalidation) {
        let done = || poll_fn(|context| self.poll(number, context));
        if self.lock().progress.is_done(number) {
            return;
        }
        if env.timeout(PATIENCE, done()).await.is_err() {
            self.hurry(number, kernel);
            done().await;
        }
    }

    fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        self.lock().progress.poll(number, context)
    }
}

#[cfg(test)]
mod tests;
