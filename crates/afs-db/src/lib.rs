//! The databases of a cell: sites of volumes and addresses of servers (the location database); users, groups
//! and memberships ([`protection`]); the journal of operations ([`journal`]); and the records of the login
//! service ([`login`]).
//!
//! One small trait, [`LocationDb`], separates the location service from its storage. [`EmbeddedLocationDb`]
//! keeps the entries in the transactional store of one process. The rules are written once, against ordered
//! rows ([`Rows`]), so every store obeys the same ones (docs/protocol vldb.md "4. Semantics"). The other
//! databases have the same structure, and may share the store.

mod depths;
mod embedded;
mod entries;
mod entry;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod import;
pub mod journal;
mod list;
mod location;
mod lock;
pub mod login;
mod pattern;
pub mod protection;
mod row_cache;
mod rows;
mod server;
mod servers;
pub mod shared;
mod store;
mod stored;
mod update;
mod volume_ids;

#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod test_answers;

pub use embedded::EmbeddedLocationDb;
pub use entry::{
    Entry, Located, NAME_MAX, Proposal, ProposedSite, SITES_MAX, Site, base_name, check_name, entry_flags,
    kind_selector, site_flags,
};
pub use error::{LocationError, Refusal, VL_BASE};
pub use journal::{EmbeddedOperationsDb, OperationsDb};
pub use list::{Filter, Listed, Page};
pub use location::{Answer, EntryKey, LocationDb, Totals};
pub use lock::Release;
pub use login::{EmbeddedLoginDb, LoginDb, StoredLoginDb};
pub use pattern::Pattern;
pub use protection::{EmbeddedProtectionDb, ProtectionDb, StoredProtectionDb, bootstrap_protection};
pub use rows::{MemoryRows, Row, Rows, RowsMut, TABLES};
pub use server::{ADDRESSES_MAX, SERVERS_MAX, Server, ServerSlot};
pub use store::{EmbeddedRows, Store};
pub use stored::StoredLocationDb;
pub use update::{EntryUpdate, SiteChange, SiteUpdate};
pub use volume_ids::FIRST_VOLUME_ID;
