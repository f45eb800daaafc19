//! Venus, the cache manager: a cell's files as a file system, fast because cached, right because called back.
//!
//! Venus knows cells, volumes, fids and paths, and nothing of FUSE: whoever stands on it asks in terms of
//! [`NodeId`]s and [`HandleId`]s and is told by an [`InvalidationSink`] what has become stale. Below it are
//! `afs-rpc` (calls, time, tasks) and a [`CacheStore`] (a directory of files, or memory). There are no sockets,
//! clocks or threads here; the same code runs in a mount and in the simulator.
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`api`] | nodes, attributes, handles, flags: what callers speak |
//! | [`cache`] | where data lies: a directory, or memory |
//! | `tokens` | who the users of this machine are to the cells |
//! | `location` | cells, volume groups, sites, servers and their addresses |
//! | `retry` | the retry ladder, a pure function |
//! | `vnode` | objects: status, promises, contents of directories |
//! | `data` | data of open files: what is here, what is unsaved |
//! | `venus` | the operations |
//!
//! What is promised to applications is written in `docs/semantics.md`, each sentence with its test.

pub mod api;
pub mod cache;

mod config;
mod counters;
mod data;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod key;
mod location;
mod locks;
mod nodes;
mod retry;
mod sink;
mod tokens;
mod venus;
mod vnode;

pub use api::{
    Access, Allocate, Attr, Backing, DirEntry, DirEntryPlus, Entry, HandleId, Kind, LockHolder, LockKind,
    LockRange, NewTime, NodeId, OpenFlags, Opened, OpenedDir, Requester, Seek, SessionLookup, SetAttr, Space,
    TellSession, Token, TokenInfo, TokenOwner,
};
pub use cache::{CacheFile, CacheStore, DiskCache, MemoryCache};
pub use config::{CellConfig, Limits, OwnIdentity, RootKind, SecurityConfig, VenusConfig};
pub use counters::CounterValues;
pub use error::{ErrorKind, Result, VenusError};
pub use sink::{InvalidationSink, NoSink};
pub use venus::Venus;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic elsewhere: every critical section of this crate leaves its data whole at each step.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
