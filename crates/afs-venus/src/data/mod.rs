//! The data of open files.

mod content;
mod file;
mod gate;

pub(crate) use content::{Content, Piece};
pub(crate) use file::FileData;
pub(crate) use gate::Gate;
