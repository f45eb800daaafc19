//! The data of open files.

mod changes;
mod content;
mod file;
mod gate;
mod piece;
mod pieces;
mod stores;
mod sums;
mod users;
mod versions;

pub(crate) use content::Content;
pub(crate) use file::FileData;
pub(crate) use gate::Gate;
pub(crate) use piece::Piece;
pub(crate) use pieces::Share;
pub(crate) use sums::{SUMMED_MAX, Sums};
pub(crate) use users::Users;

#[cfg(test)]
mod tests;
