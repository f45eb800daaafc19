//! Gauges: what the counters for monitors take from the machine, read at most once a second.

use std::sync::OnceLock;
use std::time::Duration;

use afs_rpc::{Instant, Rx, WeakRx};
use afs_wire::fs::ViceDisk;
use parking_lot::Mutex;

use crate::partitions::Partitions;

/// Anyone may ask, so a reading is used for this long.
const VALID: Duration = Duration::from_secs(1);

/// The gauges of one server.
pub(crate) struct Gauges {
    rx: WeakRx,
    /// Bytes of the process.
    process: OnceLock<Box<dyn Fn() -> u64 + Send + Sync>>,
    last: Mutex<Option<(Instant, Reading)>>,
}

/// One reading.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    /// The first ten partitions that serve.
    pub(crate) disks: [ViceDisk; 10],
    pub(crate) process_kib: u64,
}

/// What the transport of the file service says.
#[derive(Clone, Copy, Default)]
pub(crate) struct Network {
    /// Connections of clients.
    pub(crate) connections: u64,
    pub(crate) packets_sent: u64,
    pub(crate) packets_read: u64,
    pub(crate) packets_lost: u64,
}

impl Gauges {
    pub(crate) fn new(rx: &Rx) -> Self {
        Gauges { rx: rx.downgrade(), process: OnceLock::new(), last: Mutex::default() }
    }

    /// Sets how the size of the process is read, once.
    pub(crate) fn tell_process_size(&self, read: Box<dyn Fn() -> u64 + Send + Sync>) {
        let _ = self.process.set(read);
    }

    /// What the machine says, or has said within the last second.
    pub(crate) fn read(&self, now: Instant, partitions: &Partitions) -> Reading {
        let mut last = self.last.lock();
        if let Some((at, reading)) = *last
            && now.saturating_since(at) < VALID
        {
            return reading;
        }
        let process_kib = self.process.get().map_or(0, |read| read() / 1024);
        let reading = Reading { disks: disks(partitions), process_kib };
        *last = Some((now, reading));
        reading
    }

    pub(crate) fn network(&self) -> Network {
        let Some(rx) = self.rx.upgrade() else { return Network::default() };
        let (stats, holdings) = (rx.stats(), rx.holdings());
        Network {
            connections: holdings.server_connections as u64,
            packets_sent: stats.packets_sent.iter().sum(),
            packets_read: stats.packets_read.iter().sum(),
            packets_lost: stats.data_resent,
        }
    }
}

fn disks(partitions: &Partitions) -> [ViceDisk; 10] {
    let mut disks = [ViceDisk::UNUSED; 10];
    for (disk, (partition, store)) in disks.iter_mut().zip(partitions.iter()) {
        let Ok(usage) = store.usage() else { continue };
        disk.blocks_free = clamp(usage.free / 1024);
        disk.blocks = clamp(usage.total / 1024);
        for (to, from) in disk.name.0.iter_mut().zip(partition.to_string().bytes()) {
            *to = from;
        }
    }
    disks
}

fn clamp(blocks: u64) -> i32 {
    i32::try_from(blocks).unwrap_or(i32::MAX)
}
