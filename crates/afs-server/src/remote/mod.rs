//! Clients of the cell's databases, for a file server on a host without them.
//!
//! The database servers may be ours or those of another maker: only calls that every AFS-3 cell serves are
//! used (docs/protocol vldb.md "4. Semantics", RegisterAddrs; ptserver.md "6. Translation and CPS").

mod protection;
mod registration;
mod servers;

pub use protection::RemoteProtectionDb;
pub use registration::{Registration, keep_registered};
pub use servers::DatabaseServers;
