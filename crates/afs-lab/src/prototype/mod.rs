//! The prototype of 1984 as a baseline (Howard et al. 1988, sections 2.1 and 2.2), in memory: what each call is, not how long
//! it takes.
//!
//! Files are named by full path names, which the server resolves from its root at every call. Status is kept beside the data,
//! in the shadow directory `.admin` of each directory. A stub directory tells which server has what is below it; clients keep
//! such prefixes as hints. A server has a process for each client that ever contacted it. There are no callbacks: a client
//! asks whether its copy is valid (TestAuth) at each open, and at each request for a status that it has.
//!
//! The calls are counted by type while a client runs the Andrew benchmark's script ([`table2`]). What is not modelled: access
//! lists, the lock server, replication of the topmost levels, several disks, and the bound on how often a copy was checked that
//! section 2.2 tells of.

mod cache;
mod cell;
mod script;
mod server;
mod table;
mod venus;

pub use table::{Counted, table2};
