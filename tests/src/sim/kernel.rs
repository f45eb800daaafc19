//! Model of a kernel above a cache manager: locks of directories that requests hold until some time after their replies, names that
//! are invalidated under these locks by the mount's own queue, and RELEASE that comes late.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use afs_fuse::{INodeNo, NameAccess, NameInvalidation, NameQueue};
use afs_rpc::sync::{self, Notify};
use afs_rpc::{EnvExt, EnvRef};
use afs_sim::SimRng;
use afs_venus::{HandleId, InvalidationSink, NodeId, OpenFlags, Opened, Venus, VenusError};
use parking_lot::Mutex;

/// The longest time between the reply to a request and what the kernel does next.
const LATE: Duration = Duration::from_millis(3);

/// The kernel of a client machine. Its programs make requests through it, and it is the cache manager's sink.
#[derive(Clone)]
pub struct Kernel(Arc<Inner>);

struct Inner {
    env: EnvRef,
    rng: Mutex<SimRng>,
    names: NameQueue,
    /// Something was queued, or a request has ended.
    more: Notify,
    locks: Mutex<BTreeMap<u64, Arc<sync::Mutex<()>>>>,
    /// How often all names were to be looked up again because a request held the lock.
    epochs: AtomicU64,
}

impl Kernel {
    /// A kernel without a mount, and the thread that invalidates its names.
    #[must_use]
    pub fn new(env: EnvRef, rng: SimRng) -> Self {
        let inner = Inner {
            env: env.clone(),
            rng: Mutex::new(rng),
            names: NameQueue::default(),
            more: Notify::new(),
            locks: Mutex::default(),
            epochs: AtomicU64::new(0),
        };
        let kernel = Self(Arc::new(inner));
        env.spawn(Box::pin(kernel.clone().invalidate_names()));
        kernel
    }

    /// How often all names were looked up again, in place of those of a directory with a request in progress.
    #[must_use]
    pub fn epochs(&self) -> u64 {
        self.0.epochs.load(Ordering::Relaxed)
    }

    /// A request that holds a directory's lock. Those that read share it with others in a real kernel, here with none.
    pub async fn request<T>(
        &self,
        directory: NodeId,
        access: NameAccess,
        work: impl Future<Output = T>,
    ) -> T {
        let (lock, directory) = (self.lock(directory.0), INodeNo(directory.0));
        let held = lock.lock().await;
        self.0.names.enter(directory, access, Some(&*self.0));
        let done = work.await;
        self.0.names.leave(directory, access);
        self.0.more.notify_one();
        self.pause().await;
        drop(held);
        done
    }

    /// Opens a file of the top directory by its name. Where that was removed since the look-up, the name is looked up again, as the mount
    /// does for an open that the kernel repeats.
    ///
    /// # Errors
    /// Those of the cell.
    pub async fn open(
        &self,
        venus: &Arc<Venus>,
        name: &str,
        flags: OpenFlags,
    ) -> Result<(NodeId, Opened), VenusError> {
        let (entry, opened) = venus.lookup_open(NodeId::ROOT, name.as_bytes(), flags).await?;
        let opened = match opened {
            Some(opened) => Ok(opened),
            None => venus.open(entry.node, flags).await,
        };
        opened.map(|opened| (entry.node, opened)).inspect_err(|_| venus.forget(entry.node, 1))
    }

    /// The last close of a file: the program goes on at once, RELEASE comes when the kernel comes to it.
    pub fn release(&self, venus: &Arc<Venus>, handle: HandleId) {
        let (kernel, venus) = (self.clone(), venus.clone());
        self.0.env.spawn(Box::pin(async move {
            kernel.pause().await;
            // What could not be stored was told by the flush.
            let _ = venus.release(handle).await;
        }));
    }

    async fn invalidate_names(self) {
        loop {
            let more = self.0.more.notified();
            while let Some(step) = self.0.names.try_next() {
                if self.0.names.begin(&step, &*self.0) {
                    drop(self.lock(step.directory.0).lock().await);
                    self.0.names.ended(&step);
                }
            }
            more.await;
        }
    }

    fn lock(&self, directory: u64) -> Arc<sync::Mutex<()>> {
        self.0.locks.lock().entry(directory).or_default().clone()
    }

    async fn pause(&self) {
        let late = self.0.rng.lock().below(u64::try_from(LATE.as_micros()).unwrap_or(u64::MAX));
        self.0.env.sleep(Duration::from_micros(late)).await;
    }
}

impl NameInvalidation for Inner {
    /// [`Kernel::invalidate_names`] takes the lock in its place.
    fn invalidate(&self, _: INodeNo, _: &[u8]) {}

    fn revalidate_all(&self) -> bool {
        self.epochs.fetch_add(1, Ordering::Relaxed);
        true
    }
}

impl InvalidationSink for Kernel {
    fn attributes(&self, _: NodeId) {}

    fn data(&self, _: NodeId) {}

    fn entry(&self, parent: NodeId, name: &[u8]) {
        self.0.names.add(INodeNo(parent.0), [name.into()]);
        self.0.more.notify_one();
    }

    fn all_names(&self) {
        self.0.revalidate_all();
    }

    fn settled(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let inner = self.0.clone();
        let last = inner.names.awaited(Some(&*inner));
        Box::pin(async move { inner.names.settled(last, &inner.env, &*inner).await })
    }
}
