//! Snapshots: consistent reads of all tables as of one commit.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::Arc;

use afs_env::sync::Notify;
use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

use crate::base::BaseView;
use crate::cursor::{Layer, Range, Row, Span};
use crate::error::KvError;
use crate::memtable::{Memtable, MemtableAt};
use crate::tables::Tables;

/// All committed rows: those committed since the last two rotations of the log in memory, the rest in the base.
#[derive(Clone)]
pub(crate) struct Layers {
    pub(crate) active: Arc<Memtable>,
    pub(crate) frozen: Option<Arc<Memtable>>,
    pub(crate) base: Arc<BaseView>,
}

/// State that the writer publishes and readers take, under one lock held for a few instructions.
pub(crate) struct Published {
    shared: Mutex<Shared>,
    tables: Tables,
    /// Notified after each batch that becomes visible.
    moved: Notify,
}

struct Shared {
    visible: u64,
    /// Number of snapshots of each sequence number.
    pins: BTreeMap<u64, usize>,
    layers: Arc<Layers>,
}

impl Published {
    pub(crate) fn new(visible: u64, layers: Layers, tables: Tables) -> Arc<Self> {
        let shared = Shared { visible, pins: BTreeMap::new(), layers: Arc::new(layers) };
        Arc::new(Self { shared: Mutex::new(shared), tables, moved: Notify::new() })
    }

    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot {
        let (sequence, layers) = {
            let mut shared = self.lock();
            let sequence = shared.visible;
            *shared.pins.entry(sequence).or_default() += 1;
            (sequence, shared.layers.clone())
        };
        Snapshot { sequence, layers, published: self.clone() }
    }

    pub(crate) fn layers(&self) -> Arc<Layers> {
        self.lock().layers.clone()
    }

    pub(crate) fn visible(&self) -> u64 {
        self.lock().visible
    }

    /// The oldest sequence number that a snapshot holds or that the next one would take.
    pub(crate) fn floor(&self) -> u64 {
        let shared = self.lock();
        shared.pins.keys().next().map_or(shared.visible, |oldest| (*oldest).min(shared.visible))
    }

    pub(crate) fn show(&self, sequence: u64) {
        self.lock().visible = sequence;
        self.moved.notify_waiters();
    }

    /// Ready when another batch than `sequence` is the last visible one.
    pub(crate) async fn changed(&self, sequence: u64) {
        loop {
            let moved = self.moved.notified();
            if self.visible() != sequence {
                return;
            }
            moved.await;
        }
    }

    pub(crate) fn replace(&self, change: impl FnOnce(&Layers) -> Layers) {
        let mut shared = self.lock();
        let layers = Arc::new(change(&shared.layers));
        let replaced = std::mem::replace(&mut shared.layers, layers);
        drop(shared);
        drop(replaced);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock()
    }
}

/// All tables as of one commit. Taking one costs a short lock; reads never wait for a writer.
///
/// Hold it for the length of a request, not longer: it keeps replaced rows in memory.
pub struct Snapshot {
    sequence: u64,
    layers: Arc<Layers>,
    published: Arc<Published>,
}

impl Snapshot {
    /// The number of the last batch this snapshot includes.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The value of a key.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.get_raw(&self.published.tables.key(table, key))
    }

    /// As [`Snapshot::get`], without a read of the medium: for callers that must not wait for a disk.
    ///
    /// # Errors
    /// [`KvError::NotInMemory`] where the row was not written since the last two checkpoints, so that it is on the
    /// medium only.
    pub fn get_in_memory(&self, table: &str, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        self.recent(&self.published.tables.key(table, key)).ok_or(KvError::NotInMemory)
    }

    /// Rows of one table in the order of their keys, or in the reverse order.
    pub fn range(&self, table: &str, range: impl RangeBounds<[u8]>, reverse: bool) -> Range<'_> {
        let span = Span::within(self.published.tables.number(table), &range, reverse);
        Range::new(self.layers_newest_first(), &span)
    }

    /// The row with the greatest key from `first` to `last`, both included.
    pub fn last_at_or_before(&self, table: &str, first: &[u8], last: &[u8]) -> Result<Option<Row>, KvError> {
        let bounds = (std::ops::Bound::Included(first), std::ops::Bound::Included(last));
        self.range(table, bounds, true).next().transpose()
    }

    pub(crate) fn get_raw(&self, key: &[u8]) -> Result<Option<Bytes>, KvError> {
        match self.recent(key) {
            Some(value) => Ok(value),
            None => self.layers.base.get(key),
        }
    }

    /// The row in the memory tables; the outer `None` means that they do not contain the key.
    fn recent(&self, key: &[u8]) -> Option<Option<Bytes>> {
        let active = self.layers.active.get(key, self.sequence);
        active.or_else(|| self.layers.frozen.as_ref()?.get(key, self.sequence))
    }

    pub(crate) fn layers_newest_first(&self) -> Vec<Box<dyn Layer + '_>> {
        let sequence = self.sequence;
        let mut layers: Vec<Box<dyn Layer + '_>> = Vec::with_capacity(5);
        layers.push(Box::new(MemtableAt { table: &self.layers.active, sequence }));
        if let Some(table) = &self.layers.frozen {
            layers.push(Box::new(MemtableAt { table, sequence }));
        }
        layers.push(Box::new(&*self.layers.base));
        layers
    }

    pub(crate) fn tables(&self) -> &Tables {
        &self.published.tables
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut shared = self.published.lock();
        if let Some(count) = shared.pins.get_mut(&self.sequence) {
            *count -= 1;
            if *count == 0 {
                shared.pins.remove(&self.sequence);
            }
        }
    }
}
