//! Clients of the cell's databases, for a file server on a host without them.
//!
//! The database servers may be ours or those of another maker: all but one of the calls are served by every AFS-3 cell
//! (docs/protocol vldb.md "4. Semantics", RegisterAddrs; ptserver.md "6. Translation and CPS"). The one tells of changes, and
//! costs the others nothing but a refusal (docs/protocol/extensions.md "Following the protection database").

mod changes;
mod memberships;
mod protection;
mod registration;
mod servers;

pub use protection::RemoteProtectionDb;
pub use registration::{Registration, keep_registered};
pub use servers::DatabaseServers;
