//! The databases of a cell, asked over the network: for a file server on a host that keeps none of them.
//!
//! The database servers may be ours or those of another maker: only calls that every AFS-3 cell answers are made
//! (docs/protocol vldb.md "4. Semantics", RegisterAddrs; ptserver.md "6. Translation and CPS").

mod protection;
mod registration;
mod servers;

pub use protection::RemoteProtectionDb;
pub use registration::{Registration, keep_registered};
pub use servers::DatabaseServers;
