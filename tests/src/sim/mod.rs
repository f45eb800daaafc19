//! A whole cell in one process, from one seed.

pub mod cell;
pub mod content;
pub mod history;
pub mod user;
pub mod weather;
