//! The databases of a cell: sites of volumes and addresses of servers ([`location`]); users, groups and
//! memberships ([`protection`]); the journal of operations ([`journal`]); and the records of the login
//! service ([`login`]).
//!
//! One small trait, [`LocationDb`], separates the location service from its storage. [`EmbeddedLocationDb`]
//! keeps the entries in the transactional store of one process. The rules are written once, against ordered
//! rows ([`Rows`]), so every store obeys the same ones (docs/protocol vldb.md "4. Semantics"). The other
//! databases have the same structure, and may share the store.

mod depths;
mod embedded;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod import;
pub mod journal;
pub mod location;
pub mod login;
pub mod protection;
mod row_cache;
mod rows;
pub mod shared;
mod store;

#[cfg(test)]
mod test_answers;

pub use journal::{EmbeddedOperationsDb, OperationsDb};
pub use location::{
    ADDRESSES_MAX, EmbeddedLocationDb, Entry, EntryKey, EntryUpdate, FIRST_VOLUME_ID, Filter, Listed,
    Located, LocationDb, LocationError, NAME_MAX, Page, Pattern, Pending, Proposal, ProposedSite, Refusal,
    Release, SERVERS_MAX, SITES_MAX, Server, ServerSlot, Site, SiteChange, SiteUpdate, StoredLocationDb,
    Totals, VL_BASE, base_name, check_name, entry_flags, kind_selector, site_flags,
};
pub use login::{EmbeddedLoginDb, LoginDb, StoredLoginDb};
pub use protection::{EmbeddedProtectionDb, ProtectionDb, StoredProtectionDb, bootstrap_protection};
pub use rows::{MemoryRows, Row, Rows, RowsMut, TABLES};
pub use store::{EmbeddedRows, Store};
