//! The location database: sites of volumes, and addresses of servers.
//!
//! The rules are written against ordered rows ([`Rows`](crate::Rows)) and are given in docs/protocol vldb.md
//! "4. Semantics".

mod db;
mod embedded;
pub(crate) mod entries;
pub(crate) mod entry;
mod error;
pub(crate) mod list;
pub(crate) mod lock;
mod pattern;
mod server;
pub(crate) mod servers;
mod stored;
mod update;
pub(crate) mod volume_ids;

#[cfg(test)]
mod rules_tests;

pub use db::{EntryKey, LocationDb, Pending, Totals};
pub use embedded::EmbeddedLocationDb;
pub use entry::{
    Entry, Located, NAME_MAX, Proposal, ProposedSite, SITES_MAX, Site, base_name, check_name, entry_flags,
    kind_selector, site_flags,
};
pub use error::{LocationError, Refusal, VL_BASE};
pub use list::{Filter, Listed, Page};
pub use lock::Release;
pub use pattern::Pattern;
pub use server::{ADDRESSES_MAX, SERVERS_MAX, Server, ServerSlot};
pub use stored::StoredLocationDb;
pub use update::{EntryUpdate, SiteChange, SiteUpdate};
pub use volume_ids::FIRST_VOLUME_ID;
