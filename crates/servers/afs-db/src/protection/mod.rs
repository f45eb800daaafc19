//! The protection database: users, groups and memberships.
//!
//! The rules are written against ordered rows, like those of the location database, and are given in
//! docs/protocol ptserver.md. The caller is an argument of every query: permission is checked in the
//! transaction that does the work.

mod access;
mod bootstrap;
mod change;
mod cps;
mod create;
mod db;
mod delete;
mod embedded;
mod entry;
mod error;
mod fields;
mod gone;
mod ids;
pub(crate) mod import;
mod list;
mod members;
mod names;
mod requester;
pub(crate) mod rows;
mod stored;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod rules_tests;

pub use bootstrap::{FIRST_USER, bootstrap_protection};
pub use change::Change;
pub use cps::CPS_MAX;
pub use create::{NewEntry, NewId};
pub use db::{Pending, ProtectionDb};
pub use embedded::EmbeddedProtectionDb;
pub use entry::{BAD_ID, Entry, FOREIGN_QUOTA_DEFAULT, Privacy, QUOTA_DEFAULT, Status};
pub use error::{ProtectionError, Refusal};
pub use fields::Fields;
pub use list::{After, Kinds, Page};
pub use members::{GROUPS_MAX, MEMBERS_MAX, NESTING_MAX};
pub use names::NAME_MAX;
pub use requester::{Requester, RequesterIdentity};
pub use stored::StoredProtectionDb;

use requester::Known;
