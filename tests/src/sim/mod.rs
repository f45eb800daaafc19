//! A whole cell in one process, from one seed.

pub mod adversary;
pub mod allocated;
pub mod cell;
pub mod content;
pub mod editor;
pub mod fate;
pub mod history;
pub mod ledger;
pub mod machine;
pub mod people;
pub mod siege;
pub mod terms;
pub mod user;
pub mod weather;
pub mod witness;
