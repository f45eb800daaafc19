//! Processor time of the server for each kind of call, as Tables 4(b) to 4(d) of Gibson et al. 1997 have it: many equal
//! calls with warm caches, and the time of the server's process before and after them.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use afs_wire::error::Errno;
use afs_wire::fs::{
    BulkStatus, CreateFile, FetchStatus, Fids, Name, RemoveFile, Rename, SetStatus, StoreStatus,
};
use afs_wire::ids::{Fid, Mode};

use super::Target;
use super::bulk::{fetch, put};
use super::calls::many;
use super::error::{LoadError, is_refused_as};
use crate::measured_costs::MeasuredCosts;

/// Bytes of the files that are stored, fetched and removed, as in Table 4(b).
pub const SIZES: [u64; 11] = [0, 1, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 1_048_576];
/// Entries of a BulkStatus, as in Table 4(c); 13 are those that Table 7 implies.
pub const ENTRIES: [usize; 6] = [1, 3, 10, 13, 20, 25];
const ENTRIES_MEAN: usize = 13;
/// Most bytes of files that there are at a time.
pub(super) const BYTES_MAX: u64 = 256 << 20;
/// Fewest calls of a kind: the clock counts in nanoseconds.
pub(super) const CALLS_MIN: u32 = 64;

/// Name of the costs of a BulkStatus by entries: the trace has one cost for it.
const BULK_BY_ENTRIES: &str = "BulkStatus by entries";

/// A measurement of costs.
pub struct Costs<'a> {
    /// The server, and a directory in which files are made and removed.
    pub target: &'a Target,
    /// The server's address.
    pub server: SocketAddr,
    /// Processor time of the server's process so far.
    pub clock: &'a (dyn Fn() -> Result<Duration, LoadError> + Sync),
    /// Calls of each kind; fewer of those with many bytes.
    pub calls: u32,
    /// Calls in flight at a time.
    pub in_flight: u32,
    /// Ends the measurement before the next call when it is true, with [`LoadError::Stopped`].
    pub stop: &'a Arc<AtomicBool>,
}

/// Files of the measurement; each has its fid when it was created.
pub(super) type Files = Arc<Vec<OnceLock<Fid>>>;

/// A kind of call. Each is made on the file of its number.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Create,
    FetchStatus,
    StoreStatus,
    /// Of so many entries, that file and those after it.
    BulkStatus(usize),
    Rename,
    RemoveRenamed,
    /// Of so many bytes.
    Store(u64),
    Fetch(u64),
    Remove,
}

impl Costs<'_> {
    /// Adds costs by the names of Table 6, in microseconds. NFS's are those of the AFS calls that come nearest to them: the
    /// server speaks no NFS.
    ///
    /// # Errors
    /// The first call that fails ends the measurement; files may then be left behind, named `load-N`.
    pub async fn add_calls(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        self.unsized_calls(costs).await?;
        for bytes in SIZES {
            self.calls_of_size(bytes, costs).await?;
        }
        costs.add_mean("Others", &["FetchStatus", "StoreStatus", "CreateFile", "Rename"]);
        for (nfs, afs) in NFS {
            costs.copy(nfs, afs);
        }
        Ok(())
    }

    /// Removes the files named `load-N` that a measurement left which was stopped.
    ///
    /// # Errors
    /// The first call that fails for another reason than that there is no such file.
    pub async fn remove_left(&self) -> Result<(), LoadError> {
        let remove = |target: Target, number: u32| async move {
            for kind in [Kind::Remove, Kind::RemoveRenamed] {
                let removed = kind.call(&target, &[], number as usize).await;
                if !is_refused_as(&removed, Errno::ENOENT) {
                    removed?;
                }
            }
            Ok(())
        };
        many(self.target, self.calls.max(CALLS_MIN), self.in_flight, remove).await.map(drop)
    }

    async fn unsized_calls(&self, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        let files = files(self.calls.max(CALLS_MIN));
        costs.add("CreateFile", 0.0, self.each(Kind::Create, &files).await?);
        // Once before: caches are warm then.
        self.each(Kind::FetchStatus, &files).await?;
        costs.add("FetchStatus", 0.0, self.each(Kind::FetchStatus, &files).await?);
        costs.add("StoreStatus", 0.0, self.each(Kind::StoreStatus, &files).await?);
        for entries in ENTRIES {
            let microseconds = self.each(Kind::BulkStatus(entries), &files).await?;
            costs.add(BULK_BY_ENTRIES, entries as f64, microseconds);
            if entries == ENTRIES_MEAN {
                costs.add("BulkStatus", 0.0, microseconds);
            }
        }
        costs.add("Rename", 0.0, self.each(Kind::Rename, &files).await?);
        self.each(Kind::RemoveRenamed, &files).await.map(drop)
    }

    async fn calls_of_size(&self, bytes: u64, costs: &mut MeasuredCosts) -> Result<(), LoadError> {
        let files = files(self.calls_with(bytes));
        self.each(Kind::Create, &files).await?;
        costs.add("StoreData", bytes as f64, self.each(Kind::Store(bytes), &files).await?);
        self.each(Kind::Fetch(bytes), &files).await?;
        costs.add("FetchData", bytes as f64, self.each(Kind::Fetch(bytes), &files).await?);
        costs.add("RemoveFile", bytes as f64, self.each(Kind::Remove, &files).await?);
        Ok(())
    }

    /// Calls with so many bytes each.
    pub(super) fn calls_with(&self, bytes: u64) -> u32 {
        let most = u32::try_from(BYTES_MAX / bytes.max(1)).unwrap_or(u32::MAX);
        self.calls.max(CALLS_MIN).min(most)
    }

    /// Microseconds of the server for a call of a kind, the mean of one on each file.
    pub(super) async fn each(&self, kind: Kind, files: &Files) -> Result<f64, LoadError> {
        let (calls, files) = (files.len() as u32, files.clone());
        let one = move |target: Target, number| {
            let files = files.clone();
            async move { kind.call(&target, &files, number as usize).await }
        };
        self.mean(calls, one).await
    }

    /// Microseconds of the server for a call, the mean of so many.
    pub(super) async fn mean<F, W>(&self, calls: u32, one: F) -> Result<f64, LoadError>
    where
        F: Fn(Target, u32) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<(), LoadError>> + Send,
    {
        let stop = self.stop.clone();
        let unless_stopped = move |target: Target, number: u32| {
            let (stop, one) = (stop.clone(), one.clone());
            async move {
                if stop.load(Ordering::Acquire) {
                    return Err(LoadError::Stopped);
                }
                one(target, number).await
            }
        };
        let before = (self.clock)()?;
        many(self.target, calls, self.in_flight, unless_stopped).await?;
        let used = (self.clock)()?.saturating_sub(before);
        let microseconds = used.as_secs_f64() * 1e6 / f64::from(calls);
        // The clock has no more digits.
        Ok((microseconds * 1e3).round() / 1e3)
    }
}

impl Kind {
    async fn call(self, target: &Target, files: &[OnceLock<Fid>], number: usize) -> Result<(), LoadError> {
        let dir = target.directory;
        let fid = files.get(number).and_then(OnceLock::get).copied().unwrap_or(dir);
        let [name, renamed] =
            ["load", "load-renamed"].map(|name| Name::truncated(format!("{name}-{number}").as_bytes()));
        let mode = |mode| SetStatus { mode: Some(Mode(mode)), ..SetStatus::default() };
        match self {
            Self::Create => {
                let created = target.call(&CreateFile { dir, name, status: mode(0o644) }).await?;
                files.get(number).map(|file| file.set(created.fid));
                Ok(())
            }
            Self::FetchStatus => target.call(&FetchStatus { fid }).await.map(drop),
            Self::StoreStatus => target.call(&StoreStatus { fid, status: mode(0o600) }).await.map(drop),
            Self::BulkStatus(entries) => {
                let of = files.iter().cycle().skip(number).filter_map(OnceLock::get).take(entries);
                let fids = Fids::first_of(of.copied());
                target.call(&BulkStatus { fids }).await.map(drop)
            }
            Self::Rename => {
                let rename = Rename { old_dir: dir, old_name: name, new_dir: dir, new_name: renamed };
                target.call(&rename).await.map(drop)
            }
            Self::RemoveRenamed => target.call(&RemoveFile { dir, name: renamed }).await.map(drop),
            Self::Store(bytes) => put(target, fid, bytes).await.map(drop),
            Self::Fetch(bytes) => fetch(target, fid, bytes).await.map(drop),
            Self::Remove => target.call(&RemoveFile { dir, name }).await.map(drop),
        }
    }
}

/// Requests of NFS, and the calls that stand for them.
const NFS: [(&str, &str); 7] = [
    ("getattr", "FetchStatus"),
    ("setattr", "StoreStatus"),
    ("lookup", "FetchStatus"),
    ("read", "FetchData"),
    ("write", "StoreData"),
    ("create", "CreateFile"),
    ("remove", "RemoveFile"),
];

pub(super) fn files(count: u32) -> Files {
    Arc::new((0..count).map(|_| OnceLock::new()).collect())
}
