//! Simulated disks with power failures.
//!
//! A [`SimDisk`] holds named blobs. Data that was written but not synced when its node crashes is kept, dropped or
//! torn, chosen write by write from the seed. A disk can be full, can fail, and can crash its node at a chosen
//! operation, so that a crash may fall between any two writes.

pub(crate) mod blob;
mod image;
mod medium;
mod receiving;
mod segments;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::blob::{BlobHandle, BlobState};
pub use crate::disk::medium::SimMedium;
pub(crate) use crate::disk::receiving::Receiving;
pub use crate::disk::segments::SimSegments;
use crate::node::Incarnation;
use crate::rng::SimRng;

/// A disk of a node. Clones are handles on the same disk.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<Disk>>);

/// Counters of a disk since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DiskStats {
    /// Writes, truncations, creations and removals.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Operations that failed by injection.
    pub failures: u64,
    /// Power failures.
    pub crashes: u64,
    /// Reads made while datagrams were being handled. A real disk would delay all peers of that socket meanwhile.
    pub reads_while_receiving: u64,
}

pub(crate) struct Disk {
    blobs: BTreeMap<String, BlobState>,
    rng: SimRng,
    life: Option<Incarnation>,
    /// Handles of an earlier power cycle no longer reach the disk.
    cycle: u64,
    powered: bool,
    capacity: Option<u64>,
    used: u64,
    /// Changing operations left until the power fails.
    crash_in: Option<u64>,
    fail_writes_per_million: u32,
    fail_reads_per_million: u32,
    stats: DiskStats,
}

impl SimDisk {
    /// An empty disk without a size limit.
    #[must_use]
    pub fn new(rng: SimRng) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            blobs: BTreeMap::new(),
            rng,
            life: None,
            cycle: 0,
            powered: true,
            capacity: None,
            used: 0,
            crash_in: None,
            fail_writes_per_million: 0,
            fail_reads_per_million: 0,
            stats: DiskStats::default(),
        })))
    }

    /// A medium of the key-value store on this disk; its blobs have names of their own, prefixed by `name`.
    #[must_use]
    pub fn medium(&self, name: &str) -> SimMedium {
        SimMedium { disk: self.clone(), prefix: format!("{name}/"), cycle: self.with(|disk| disk.cycle) }
    }

    /// Segments for a drive on this disk, with names prefixed by `name`.
    #[must_use]
    pub fn segments(&self, name: &str) -> SimSegments {
        SimSegments { disk: self.clone(), prefix: format!("{name}/"), cycle: self.with(|disk| disk.cycle) }
    }

    /// Growth beyond this many bytes fails with `StorageFull`. `None`: no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.with(|disk| disk.capacity = bytes);
    }

    /// The limit set by [`SimDisk::set_capacity`].
    #[must_use]
    pub fn capacity(&self) -> Option<u64> {
        self.with(|disk| disk.capacity)
    }

    /// Bytes in all blobs.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.with(|disk| disk.used)
    }

    /// Bytes in blocks of 4 KiB that are not zeros: what a disk with holes would hold.
    #[must_use]
    pub fn filled(&self) -> u64 {
        self.with(|disk| disk.blobs.values().map(BlobState::filled).sum())
    }

    /// Fractions of writes and of reads that fail with an I/O error.
    pub fn set_failures(&self, writes_per_million: u32, reads_per_million: u32) {
        self.with(|disk| {
            disk.fail_writes_per_million = writes_per_million;
            disk.fail_reads_per_million = reads_per_million;
        });
    }

    /// Crashes the disk and its node in the middle of the `operations`-th write or sync from now.
    pub fn crash_after(&self, operations: u64) {
        self.with(|disk| disk.crash_in = Some(operations));
    }

    /// Counts of operations.
    #[must_use]
    pub fn stats(&self) -> DiskStats {
        self.with(|disk| disk.stats)
    }

    /// Replaces the contents by what a power failure at this instant might leave. Handles fail from now on.
    pub fn power_off(&self) {
        self.with(Disk::power_off);
    }

    /// The names of the blobs that begin with `prefix`, without it, in order.
    pub(crate) fn names(&self, prefix: &str, cycle: u64) -> io::Result<Vec<String>> {
        self.with(|disk| {
            disk.check_power(cycle)?;
            Ok(disk.blobs.keys().filter_map(|name| name.strip_prefix(prefix)).map(str::to_owned).collect())
        })
    }

    /// Removes a blob durably; one that does not exist is no error.
    pub(crate) fn remove(&self, name: &str, cycle: u64) -> io::Result<()> {
        self.with(|disk| {
            let countdown = disk.count_change(cycle)?;
            disk.stats.writes += 1;
            if let Some(blob) = disk.blobs.remove(name) {
                disk.used -= blob.len();
            }
            match countdown {
                Countdown::NotYet => Ok(()),
                Countdown::Now => Err(disk.fail_power()),
            }
        })
    }

    /// Powers the disk for a new incarnation of its node.
    pub(crate) fn belong_to(&self, life: Incarnation) {
        self.with(|disk| {
            disk.power_off();
            disk.cycle += 1;
            disk.powered = true;
            disk.life = Some(life);
        });
    }

    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Disk) -> T) -> T {
        work(&mut self.0.lock())
    }
}

impl Disk {
    fn power_off(&mut self) {
        if !self.powered {
            return;
        }
        self.powered = false;
        self.crash_in = None;
        self.stats.crashes += 1;
        let mode = image::Mode::draw(&mut self.rng);
        for blob in self.blobs.values_mut() {
            image::settle(blob, mode, &mut self.rng);
        }
        self.blobs.retain(|_, blob| blob.exists_durably);
        self.used = self.blobs.values().map(BlobState::len).sum();
    }

    /// Whether a handle of power cycle `cycle` is valid.
    fn check_power(&self, cycle: u64) -> io::Result<()> {
        if self.powered && self.cycle == cycle { Ok(()) } else { Err(io::Error::other("the power is off")) }
    }

    /// Check before every changing operation. `before` says whether a crash here comes before it or after it.
    fn count_change(&mut self, cycle: u64) -> io::Result<Countdown> {
        self.check_power(cycle)?;
        if self.rng.chance(self.fail_writes_per_million) {
            self.stats.failures += 1;
            return Err(io::Error::other("the disk reports an error"));
        }
        match self.crash_in.as_mut() {
            Some(0) => Ok(Countdown::Now),
            Some(left) => {
                *left -= 1;
                Ok(Countdown::NotYet)
            }
            None => Ok(Countdown::NotYet),
        }
    }

    fn check_read(&mut self, cycle: u64) -> io::Result<()> {
        self.check_power(cycle)?;
        self.stats.reads_while_receiving += u64::from(Receiving::is_under_way());
        if self.rng.chance(self.fail_reads_per_million) {
            self.stats.failures += 1;
            return Err(io::Error::other("the disk reports an error"));
        }
        Ok(())
    }

    /// Power failure in the middle of an operation: for the node too.
    fn fail_power(&mut self) -> io::Error {
        if let Some(life) = &self.life {
            life.end();
        }
        self.power_off();
        io::Error::other("the power went away")
    }

    fn charge(&mut self, from: u64, to: u64) -> io::Result<()> {
        let used = self.used - from + to;
        if to > from && self.capacity.is_some_and(|capacity| used > capacity) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.used = used;
        Ok(())
    }

    fn blob(&mut self, handle: &BlobHandle) -> io::Result<&mut BlobState> {
        self.blobs
            .get_mut(&handle.name)
            .filter(|blob| blob.serial == handle.serial)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the blob was removed"))
    }
}

enum Countdown {
    NotYet,
    Now,
}
