//! Venus, the cache manager: a cell's files as a file system, fast because cached, right because called back.
//!
//! Venus knows cells, volumes, fids and paths, and nothing of FUSE: whoever stands on it asks in terms of
//! [`NodeId`]s and [`HandleId`]s and is told by an [`InvalidationSink`] what has become stale. Below it are
//! `afs-rpc` (calls, time, tasks) and a [`CacheStore`] (a directory of files, or memory). There are no sockets,
//! clocks or threads here; the same code runs in a mount and in the simulator.
//!
//! Each part of it owns its state and is tested alone. A module uses those above it in this table only:
//!
//! | Module | Holds |
//! | --- | --- |
//! | [`api`] | nodes, attributes, handles, flags: what callers speak |
//! | `error` | what went wrong, and which number a program gets for it |
//! | `key` | how cells and objects are named inside |
//! | `counters` | what was done, counted |
//! | `sink` | where those above are told that something is stale |
//! | [`cache`] | where data lies: a directory, or memory |
//! | `fuzzing` | what the fuzz targets run |
//! | `config` | what Venus is told at its start |
//! | `locks` | locks of a file's bytes among the processes here |
//! | `promise` | one promise, and the line of breaks |
//! | `identity` | who the users of this machine are to the cells |
//! | `leftover_locks` | locks that servers may still have in our name |
//! | `kernel` | what those above us hold, and how they hear that it is stale |
//! | `location` | cells, volume groups, sites, servers and their addresses |
//! | `data` | data of open files: what is here, what is unsaved |
//! | `vnode` | objects of the status cache: status, rights, contents of directories |
//! | `promises` | what servers would tell of, what has ended, and who must forget then |
//! | `calls` | calls to the sites of a volume, down the retry ladder |
//! | `transfer` | bytes of files between servers and this machine, whatever carries them |
//! | `files` | cache files, open handles, what is unsaved |
//! | `names` | what names stand for, as far as it is known here |
//! | `venus` | the operations |
//!
//! What is promised to applications is written in `docs/semantics.md`, each sentence with its test.

pub mod api;
pub mod cache;
mod calls;
mod kernel;

mod config;
mod counters;
mod data;
mod error;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod identity;
mod key;
mod leftover_locks;
mod location;
mod locks;
mod names;
mod promise;
mod promises;
mod sink;
mod transfer;
mod venus;
mod vnode;

pub use api::{
    Access, Allocate, Attr, Backing, DirEntry, DirEntryPlus, Entry, HandleId, Kind, LockHolder, LockKind,
    LockRange, NewTime, NodeId, OpenFlags, Opened, OpenedDir, Requester, Seek, SessionCallback,
    SessionLookup, SetAttr, Space, Token, TokenInfo, TokenOwner,
};
pub use cache::{CacheFile, CacheStore, DiskCache, MemoryCache};
pub use config::{CellConfig, Limits, OwnIdentity, RootKind, SecurityConfig, VenusConfig};
pub use counters::CounterValues;
pub use error::{ErrorKind, Result, VenusError};
pub use sink::{InvalidationSink, NoSink};
pub use venus::Venus;
