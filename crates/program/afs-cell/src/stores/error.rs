//! Errors of checking and repairing stores that no server has open.

use std::io;
use std::path::PathBuf;

/// Why stores could not be checked or repaired.
#[derive(Debug, thiserror::Error)]
pub enum StoresError {
    /// A directory has no store.
    #[error(
        "{} has no store; name a state directory, the directory of a partition or of a drive, or a store such as STATE/db",
        .0.display()
    )]
    NoStore(PathBuf),
    /// A server has it open.
    #[error("{} is open in a server; stop that with `andrew down`, then try again", .0.display())]
    InUse(PathBuf),
    /// It cannot be read.
    #[error("cannot read {}: {why}", .path.display())]
    Read {
        /// The store.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// There is nothing to repair.
    #[error("{} is whole; nothing was changed", .0.display())]
    Whole(PathBuf),
    /// There would be nothing in the repaired store.
    #[error(
        "nothing of {} can be kept; put its files back from a backup{}", .path.display(),
        if *.later { ", or let --all apply the batches behind those that are lost" } else { "" }
    )]
    NothingLeft {
        /// The store.
        path: PathBuf,
        /// Whether there are batches behind the lost ones.
        later: bool,
    },
    /// What a server cannot do without may be lost.
    #[error(
        "the numbers that were given so far ({table}) may be lost in {}, and given twice they would mix the data of volumes or \
         users; put its files back from a backup", .path.display()
    )]
    Counters {
        /// The store.
        path: PathBuf,
        /// The table that has them.
        table: String,
    },
    /// The repaired store cannot be made. The damaged one is as it was.
    #[error("cannot make {}: {why}; {} is as it was", .new.display(), .path.display())]
    Make {
        /// The store.
        path: PathBuf,
        /// Where the new one was to be.
        new: PathBuf,
        /// The fault.
        why: String,
    },
    /// The repaired store cannot take the place of the damaged one.
    #[error("{} is repaired in {} and cannot take its place: {error}", .path.display(), .new.display())]
    Exchange {
        /// The store.
        path: PathBuf,
        /// The repaired one.
        new: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}
