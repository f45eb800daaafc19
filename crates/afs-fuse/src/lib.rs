//! The kernel's side of a mount: FUSE requests become operations of `afs-venus`, and what Venus says
//! has become stale is told to the kernel.
//!
//! Three rules carry the whole crate:
//!
//! * **The thread that reads requests never waits.** Each request becomes a future that owns its reply.
//!   It is polled once on the spot, since most are answered from memory or by one small access to the cache's
//!   files; one that has to wait goes on where it is woken.
//! * **The kernel keeps names, attributes and listings without limit of time.** Venus promises that
//!   what it hands out stays true until its [`InvalidationSink`](afs_venus::InvalidationSink) is told
//!   otherwise; [`KernelSink`] is that sink. What not everybody may know is kept only where all who can ask
//!   have the same rights; elsewhere the kernel asks each time, and says for whom. Opening a file or a
//!   directory is asked for always, so pages and listings may be kept in any case.
//! * **Bytes do not pass through here where the kernel can go to the cache file itself**
//!   (passthrough), and where it may not, its page cache is kept between opens.
//!
//! This is the only crate that names the FUSE binding.

mod accounts;
mod attribute_queue;
mod convert;
mod error;
mod filesystem;
mod inodes;
mod kernel;
mod mount;
mod name_queue;
mod negative_entries;
mod ops;
mod options;
mod passthrough;
mod progress;
mod reader_threads;
mod sessions;
mod signals;
mod sink;
mod unmount;

pub use accounts::{Account, AccountFuture, Accounts, NO_GROUP, NOBODY};
pub use error::MountError;
pub use mount::{Mounted, mount};
pub use options::{MountOptions, Owner};
pub use sessions::{ProcessSessions, SESSION_VARIABLE};
pub use sink::KernelSink;
pub use unmount::unmount;
