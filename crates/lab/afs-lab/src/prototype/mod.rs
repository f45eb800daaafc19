//! The prototype of 1984 as a baseline that runs (Howard et al. 1988, sections 2.1 and 2.2); nothing of Andrew's servers is in it.
//!
//! Files are named by full path names, which the server resolves from its root at every call. Status is kept beside the data,
//! in the shadow directory `.admin` of each directory. A stub directory tells which server has what is below it; clients keep
//! such prefixes as hints. A server has a process for each client connection, and these share the files alone. There are no
//! callbacks: a client keeps whole files and status, and asks whether its copy is valid (TestAuth) at each open, and at each request
//! for a status that it has.
//!
//! A client runs the Andrew benchmark's script: in this process its calls are counted by type ([`table2`]); as a process beside
//! others ([`ClientPlace`], [`Listener`]) it is timed. What is not there: access lists and authentication, the lock server (a lock of
//! the shadow directory stands for it), replication of the topmost levels, removal, several disks, and the bound on how often a
//! copy was checked that section 2.2 tells of. Files are not flushed to disk.

mod cache;
mod call;
mod cell;
mod client;
mod prepared;
mod remote;
mod script;
mod serve;
mod server;
mod table;
mod tree;
mod venus;
mod wire;

pub use client::{ClientPlace, ClientRun};
pub use serve::{Ended, Listener, session};
pub use table::{Counted, table2};

use crate::error::LabError;

impl From<call::Failure> for LabError {
    fn from(failure: call::Failure) -> Self {
        Self::prototype(failure)
    }
}
