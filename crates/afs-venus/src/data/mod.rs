//! The data of open files.

mod content;
mod file;

pub(crate) use content::{Content, Piece};
pub(crate) use file::FileData;
