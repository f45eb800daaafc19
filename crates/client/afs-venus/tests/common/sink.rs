//! A sink that records the invalidations it gets.

use std::sync::{Arc, Mutex};

use afs_venus::{InvalidationSink, NodeId};

#[derive(Clone, Default)]
pub struct RecordingSink(Arc<Mutex<Vec<String>>>);

impl RecordingSink {
    /// Invalidations since the last call, sorted and without duplicates.
    pub fn take(&self) -> Vec<String> {
        let mut records = std::mem::take(&mut *self.0.lock().unwrap());
        records.sort();
        records.dedup();
        records
    }

    fn record(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }
}

impl InvalidationSink for RecordingSink {
    fn attributes(&self, node: NodeId) {
        self.record(format!("attributes {:x}", node.0));
    }

    fn data(&self, node: NodeId) {
        self.record(format!("data {:x}", node.0));
    }

    fn entry(&self, parent: NodeId, name: &[u8]) {
        self.record(format!("entry {:x} {}", parent.0, String::from_utf8_lossy(name)));
    }
}
