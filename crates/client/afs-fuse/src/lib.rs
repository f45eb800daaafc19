//! The kernel's side of a mount: FUSE requests become operations of `afs-venus`, and invalidations from Venus become
//! notifications to the kernel.
//!
//! Three rules hold in the whole crate:
//!
//! * **The thread that reads requests never waits.** Each request becomes a future that owns its reply. It is polled
//!   once on that thread, since most replies come from memory or from one small access to the cache's files; a future
//!   that has to wait continues on the thread that wakes it.
//! * **The kernel keeps names, attributes and listings without a time limit.** Venus guarantees that what it hands out
//!   stays true until it notifies its [`InvalidationSink`](afs_venus::InvalidationSink); [`KernelSink`] is that sink.
//!   Data that some users may not see is kept only if all users of the mount have the same rights; otherwise the kernel
//!   sends each request, with the user who makes it. Opening a file or a directory is always a request, so pages and
//!   listings may be kept in any case.
//! * **Bytes do not pass through this process if the kernel can access the cache file itself** (passthrough); otherwise
//!   the kernel's page cache is kept between opens.
//!
//! This is the only crate that names the FUSE binding.

mod accounts;
mod attribute_queue;
mod convert;
mod error;
mod filesystem;
mod inodes;
mod kernel;
mod lengths;
mod mount;
mod name_queue;
mod negative_entries;
mod ops;
mod options;
mod passthrough;
mod progress;
mod reader_threads;
mod renewals;
mod sessions;
mod signals;
mod sink;
mod unmount;

pub use accounts::{
    Account, AccountFuture, Accounts, CELL_UIDS, NO_GROUP, NOBODY, NoOwner, cell_user_of_uid,
    uid_of_cell_user,
};
pub use error::MountError;
pub use fuser::INodeNo;
pub use inodes::Inodes;
pub use mount::{Mounted, mount};
pub use name_queue::{NameAccess, NameInvalidation, NameQueue, Step};
pub use options::{MountOptions, Owner};
#[cfg(feature = "fuzzing")]
pub use sessions::read_any_process;
pub use sessions::{ProcessSessions, SESSION_VARIABLE};
pub use sink::KernelSink;
pub use unmount::unmount;
