//! Calls to the servers of a cell.

mod by_path;
mod entries;
mod forward;
mod location;
mod lock;
mod proof;
mod settings;
mod stream;
mod transaction;
mod volume;

pub(crate) use transaction::{Attach, Transaction, UNPUBLISHED, cookie};
