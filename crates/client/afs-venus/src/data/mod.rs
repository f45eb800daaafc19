//! Data of open files.

mod change_lock;
mod changes;
mod content;
mod file;
mod piece;
mod pieces;
mod stores;
mod sums;
mod use_counts;
mod versions;

pub(crate) use change_lock::ChangeLock;
pub(crate) use content::Content;
pub(crate) use file::FileData;
pub(crate) use piece::Piece;
pub(crate) use pieces::StoreScope;
pub(crate) use sums::{SUMMED_MAX, Sums};
pub(crate) use use_counts::UseCounts;

#[cfg(test)]
mod tests;
