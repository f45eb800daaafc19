//! Invalidation of what the kernel holds: queues of attributes, pages and names.
//!
//! Attributes are invalidated at once, since the kernel needs no lock for that (if it is too early, see
//! [`crate::attribute_queue`]). The invalidation of pages waits for reads in progress, that of names for the
//! directory's lock; these have queues and threads of their own, and [`InvalidationSink::settled`] waits for them.

use crate::attribute_queue::AttributeQueue;
use crate::kernel::Kernel;
use crate::name_queue::{NameAccess, NameInvalidation, NameQueue};
use crate::progress::Progress;
use afs_env::{EnvRef, refused};
use afs_venus::{InvalidationSink, NodeId};
use fuser::INodeNo;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Invalidation sink of one mount. It is made first, passed to Venus, and then to [`crate::mount`]; invalidations
/// before the mount exists concern nothing that the kernel could hold.
#[derive(Clone, Default)]
pub struct KernelSink(Arc<Shared>);

#[derive(Default)]
struct Shared {
    kernel: OnceLock<Kernel>,
    env: OnceLock<EnvRef>,
    /// Incremented by every invalidation: a reply in progress meanwhile may be stale.
    epoch: AtomicU64,
    names: NameQueue,
    pages: Pages,
    attributes: AttributeQueue,
    /// Whether the kernel knows `FUSE_NOTIFY_INC_EPOCH`, after which it looks up all names again.
    doubts_all_names: OnceLock<bool>,
}

/// Count of invalidations at a point in time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Epoch(u64);

/// A request in progress in a directory; it ends when this is dropped.
pub(crate) struct DirectoryRequest<'s> {
    shared: &'s Shared,
    directory: INodeNo,
    access: NameAccess,
}

impl KernelSink {
    /// A sink that is not attached to a mount yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The present count of invalidations.
    pub(crate) fn epoch(&self) -> Epoch {
        Epoch(self.0.epoch.load(Ordering::Acquire))
    }

    /// Starts the threads that notify the kernel.
    pub(crate) fn attach(&self, kernel: Kernel, env: EnvRef) -> io::Result<()> {
        if self.0.env.set(env).is_err() || self.0.kernel.set(kernel).is_err() {
            return Err(io::Error::other("a sink belongs to one mount"));
        }
        let (names, pages, attributes) = (self.0.clone(), self.0.clone(), self.0.clone());
        start("fuse-names", move || names.run_names())?;
        start("fuse-pages", move || pages.run_pages())?;
        start("fuse-late", move || attributes.run_attributes())
    }

    /// Ends the threads when the mount is gone. Queued invalidations count as done.
    pub(crate) fn detach(&self) {
        self.0.names.close();
        self.0.pages.close();
        self.0.attributes.close();
    }

    /// Whether the kernel can invalidate all names at once (Linux 6.16). The first call does so.
    pub(crate) fn can_invalidate_all_names(&self) -> bool {
        let Some(kernel) = self.0.kernel.get() else { return false };
        *self.0.doubts_all_names.get_or_init(|| kernel.revalidate_all())
    }

    /// Invalidates names that the kernel holds as missing.
    pub(crate) fn invalidate_names(&self, directory: INodeNo, names: Vec<Box<[u8]>>) {
        if !names.is_empty() && self.0.kernel.get().is_some() {
            self.0.names.add(directory, names);
        }
    }

    /// The kernel is about to rename an entry that it holds; see [`NameQueue::renamed`].
    pub(crate) fn renamed(&self, directory: INodeNo, name: &[u8], is_stale: bool) {
        if self.0.kernel.get().is_some() {
            self.0.names.renamed(directory, name, is_stale);
        }
    }

    /// Invalidates the kernel's pages of a node; the kernel first writes those changed through mappings. Ready when
    /// that is done. It waits for pages alone: a requester that holds a file's lock must not wait for a name, since the
    /// lock of the name's directory may be held by a request that waits for the file's lock.
    pub(crate) async fn invalidate_pages(&self, node: NodeId) {
        if self.0.kernel.get().is_none() {
            return;
        }
        let number = self.0.pages.add(node);
        poll_fn(|context| self.0.pages.poll(number, context)).await;
    }

    /// Waits until the kernel has lost the pages of a node that were invalidated so far: a length that reaches beyond them must not be told
    /// before.
    pub(crate) async fn pages_invalidated(&self, node: NodeId) {
        if let Some(number) = self.0.pages.pending(node) {
            poll_fn(|context| self.0.pages.poll(number, context)).await;
        }
    }

    /// Makes the kernel look up every name in a directory again; ready when that is so. A user is about to be led into it.
    /// `at_once`: by a notification about all names.
    pub(crate) async fn look_up_again(&self, ino: INodeNo, node: NodeId, at_once: bool) {
        self.0.advance();
        let Some(kernel) = self.0.kernel.get() else { return };
        if at_once {
            kernel.revalidate_all();
            return;
        }
        let names = kernel.venus.upgrade().map(|venus| venus.names_handed_out(node)).unwrap_or_default();
        self.invalidate_names(ino, names);
        self.invalidate_names(ino, kernel.negatives.take(ino));
        self.0.names_settled().await;
    }

    /// Registers a request that holds a directory's lock, until the result is dropped.
    pub(crate) fn enter(&self, directory: INodeNo, access: NameAccess) -> DirectoryRequest<'_> {
        self.0.names.enter(directory, access, self.0.name_invalidation());
        DirectoryRequest { shared: &self.0, directory, access }
    }
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let started = thread::Builder::new().name(name.into()).spawn(work);
    started.map(drop).map_err(|error| refused(&format!("the thread `{name}`"), &error))
}

impl Drop for DirectoryRequest<'_> {
    fn drop(&mut self) {
        self.shared.names.leave(self.directory, self.access);
    }
}

impl InvalidationSink for KernelSink {
    fn attributes(&self, node: NodeId) {
        self.0.advance();
        let Some(kernel) = self.0.kernel.get() else { return };
        for ino in kernel.inodes.numbers(node) {
            if kernel.invalidate_attributes(ino, node) {
                self.0.attributes.add(ino, node);
            }
            self.invalidate_names(ino, kernel.negatives.take(ino));
        }
    }

    fn data(&self, node: NodeId) {
        self.attributes(node);
        if self.0.kernel.get().is_some() {
            self.0.pages.add(node);
        }
    }

    fn entry(&self, parent: NodeId, name: &[u8]) {
        self.0.advance();
        let Some(kernel) = self.0.kernel.get() else { return };
        for ino in kernel.inodes.numbers(parent) {
            self.0.names.add(ino, [name.into()]);
        }
    }

    fn all_names(&self) {
        self.0.advance();
        if let Some(kernel) = self.0.kernel.get() {
            kernel.revalidate_all();
        }
    }

    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let shared = self.0.clone();
        let names = Box::pin(shared.names_settled());
        let (pages, attributes) = (shared.pages.last(), shared.attributes.last());
        Box::pin(Settling { shared, names: Some(names), pages, attributes, lacks: [false; 3] })
    }
}

/// The wait for all that was queued until a time. Says what it lacked if it is given up.
struct Settling {
    shared: Arc<Shared>,
    names: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pages: u64,
    attributes: u64,
    /// Names, pages and attributes that were not settled when last polled.
    lacks: [bool; 3],
}

impl Future for Settling {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.names.as_mut().is_some_and(|names| names.as_mut().poll(context).is_ready()) {
            self.names = None;
        }
        self.lacks = [
            self.names.is_some(),
            self.shared.pages.poll(self.pages, context).is_pending(),
            self.shared.attributes.poll(self.attributes, context).is_pending(),
        ];
        if self.lacks.contains(&true) { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Settling {
    fn drop(&mut self) {
        let [names, pages, attributes] = self.lacks;
        if names || pages || attributes {
            tracing::info!(names, pages, attributes, "what the kernel was to forget is given up");
        }
    }
}

impl Shared {
    fn advance(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    fn name_invalidation(&self) -> Option<&dyn NameInvalidation> {
        self.kernel.get().map(|kernel| kernel as &dyn NameInvalidation)
    }

    /// Waits for all names queued so far.
    fn names_settled(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let (shared, number) = (self.clone(), self.names.awaited(self.name_invalidation()));
        async move {
            if let (Some(env), Some(kernel)) = (shared.env.get(), shared.kernel.get()) {
                shared.names.settled(number, env, kernel).await;
            }
        }
    }

    fn run_names(&self) {
        if let Some(kernel) = self.kernel.get() {
            self.names.run(kernel);
        }
    }

    fn run_attributes(&self) {
        if let Some(kernel) = self.kernel.get() {
            self.attributes.run(|ino, node| kernel.invalidate_attributes(ino, node));
        }
    }

    fn run_pages(&self) {
        let Some(kernel) = self.kernel.get() else { return };
        while let Some((number, node)) = self.pages.next() {
            kernel.inodes.numbers(node).into_iter().for_each(|ino| kernel.invalidate_pages(ino, node));
            self.pages.done(number, node);
        }
    }
}

/// Nodes whose pages are to be invalidated. Bounded by the objects that Venus holds: each is queued once.
#[derive(Default)]
struct Pages {
    state: Mutex<PagesState>,
    more: Condvar,
}

#[derive(Default)]
struct PagesState {
    work: VecDeque<(u64, NodeId)>,
    /// The last number of each node that is queued or in progress.
    pending: BTreeMap<NodeId, u64>,
    progress: Progress,
}

impl PagesState {
    /// The number of a node that is queued, and not in progress.
    fn queued(&self, node: NodeId) -> Option<u64> {
        let (first, _) = self.work.front()?;
        self.pending.get(&node).copied().filter(|number| number >= first)
    }
}

impl Pages {
    fn lock(&self) -> MutexGuard<'_, PagesState> {
        self.state.lock()
    }

    /// Queues a node, unless it is queued; returns its sequence number.
    fn add(&self, node: NodeId) -> u64 {
        let mut state = self.lock();
        if let Some(number) = state.queued(node) {
            return number;
        }
        let number = state.progress.add();
        state.work.push_back((number, node));
        state.pending.insert(node, number);
        self.more.notify_one();
        number
    }

    /// The number after which nothing of a node is queued or in progress.
    fn pending(&self, node: NodeId) -> Option<u64> {
        self.lock().pending.get(&node).copied()
    }

    fn next(&self) -> Option<(u64, NodeId)> {
        let mut state = self.lock();
        while state.work.is_empty() && !state.progress.is_closed() {
            self.more.wait(&mut state);
        }
        if state.progress.is_closed() { None } else { state.work.pop_front() }
    }

    fn done(&self, number: u64, node: NodeId) {
        let mut state = self.lock();
        if state.pending.get(&node) == Some(&number) {
            state.pending.remove(&node);
        }
        let wakers = state.progress.done_up_to(number);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    fn close(&self) {
        let wakers = self.lock().progress.close();
        self.more.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    fn last(&self) -> u64 {
        self.lock().progress.last()
    }

    fn poll(&self, number: u64, context: &mut Context<'_>) -> Poll<()> {
        self.lock().progress.poll(number, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_queued_once_however_often_they_are_broken() {
        let pages = Pages::default();
        let first = pages.add(NodeId(2));
        pages.add(NodeId(3));
        assert!((0..1000).all(|_| pages.add(NodeId(2)) == first));
        assert_eq!(pages.lock().work.len(), 2);
        assert_eq!(pages.next(), Some((first, NodeId(2))));
        let later = pages.add(NodeId(2));
        assert!(later > first, "a break while it is being invalidated counts once more");
        assert!((0..1000).all(|_| pages.add(NodeId(2)) == later));
        pages.done(first, NodeId(2));
        assert_eq!(pages.pending(NodeId(2)), Some(later));
        assert_eq!(pages.lock().work.len(), 2);
    }

    #[test]
    fn invalidations_before_the_mount_complete_at_once() {
        let sink = KernelSink::new();
        let before = sink.epoch();
        sink.data(NodeId(5));
        sink.entry(NodeId(5), b"name");
        assert!(sink.epoch() != before);
        let mut settled = sink.settled();
        assert!(settled.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}
