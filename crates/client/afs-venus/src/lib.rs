//! Venus, the cache manager: presents the files of cells as one file system, with caches that callbacks keep current.
//!
//! Venus knows cells, volumes, fids and paths, and nothing of FUSE: its caller uses [`NodeId`]s and [`HandleId`]s and
//! receives invalidations through an [`InvalidationSink`]. Below it are `afs-rpc` (calls, time, tasks) and a
//! [`CacheStore`] (a directory of files, or memory). This crate has no sockets, clocks or threads; the same code runs in
//! a mount and in the simulator.
//!
//! Each part owns its state and is tested alone. A module uses only those above it in this table:
//!
//! | Module | Contents |
//! | --- | --- |
//! | `error` | errors, and their translation to errno |
//! | [`api`] | types of the interface to callers: nodes, attributes, handles, flags |
//! | `key` | internal keys of cells and objects |
//! | `counters` | counters of calls, hits and bytes |
//! | `sink` | the interface for invalidations |
//! | `objects` | the interface for reads of object stores |
//! | `resolver` | the interface for look-ups of cells |
//! | [`cache`] | stores of cached data: a directory, or memory |
//! | `fuzzing` | functions for the fuzz targets |
//! | `config` | configuration of Venus |
//! | `promise` | one promise, and the sequence of breaks |
//! | `identity` | users, tokens and sessions |
//! | `lock_queue` | the processes of this machine that wait for an advisory lock |
//! | `locks` | advisory locks of the processes of this machine |
//! | `leftover_locks` | locks that servers may still hold for this client |
//! | `retry_orders` | stores of unsaved data that users have ordered |
//! | `kernel` | nodes that the kernel holds, and their invalidation |
//! | `location` | cells, volume groups, sites, servers and their addresses |
//! | `data` | data of open files: which bytes are cached, which are dirty |
//! | `residency` | what stays in the cache of each object, by rules and by pins, and what of that is to be looked at |
//! | `vnode` | objects of the status cache: status, rights, contents of directories |
//! | `lock_waits` | which processes wait for which locks, to find circles |
//! | `promises` | which objects are promised, ends of promises, and the invalidations that follow |
//! | `calls` | calls to the sites of a volume, with the retry ladder |
//! | `transfer` | transfer of file data between servers and this machine, by any route |
//! | `bypass` | the memory for data of files that bypass the disk cache |
//! | `files` | cache files, open handles, dirty data |
//! | `names` | names in cached directories, and synthetic directories |
//! | `rounds` | who changes names in a directory at present, and who waits |
//! | `leases` | leases of directories, and what was decided under them |
//! | `venus` | the operations |
//!
//! The semantics for applications are in `docs/semantics.md`, with a test for each sentence.

pub mod api;
mod bypass;
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
mod leases;
mod leftover_locks;
mod location;
mod lock_queue;
mod lock_waits;
mod locks;
mod names;
mod objects;
mod promise;
mod promises;
mod residency;
mod resolver;
mod retry_orders;
mod rounds;
mod sink;
mod transfer;
mod venus;
mod vnode;

pub use api::{
    Access, Activity, ActivityCounts, Allocate, Attr, Backing, BypassRequest, CacheActivity, DirEntry,
    DirEntryPlus, Entry, ExplainedBypass, ExplainedData, ExplainedDrive, ExplainedError, ExplainedFid,
    ExplainedLock, ExplainedLocks, ExplainedPromise, ExplainedRights, ExplainedServer, ExplainedStatus,
    ExplainedVolume, Explanation, HandleId, Kind, KnownCell, LeaseActivity, LockHolder, LockKind, LockRange,
    NewTime, NodeId, OngoingCall, OpenAttr, OpenFlags, Opened, OpenedDir, PinOptions, PinState, Pinned,
    Requester, Seek, ServerActivity, SessionCallback, SessionLookup, SetAttr, SlowCall, Space, Token,
    TokenInfo, TokenOwner, Unpinned, Unpromised, Unsaved, UnsavedPiece, Unsettled,
};
pub use cache::{CacheFile, CacheKeyError, CacheSecret, CacheStore, DiskCache, MemoryCache, Sweeper};
pub use config::{
    BypassLimits, CellConfig, DataPathConfig, Limits, OwnIdentity, RootKind, SecurityConfig, VenusConfig,
};
pub use counters::CounterValues;
pub use error::{ErrorKind, Result, VenusError};
pub use objects::{ObjectError, ObjectReader};
pub use resolver::{CellResolver, Resolved};
pub use sink::{InvalidationSink, NoSink};
pub use venus::Venus;
