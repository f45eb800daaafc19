//! Operations on volumes (Howard et al. 1988, section 6) in a cell of two servers that the lab starts: clone, move, release,
//! quota, dump and restore, each with its time and the bytes that the servers wrote for it.
//!
//! The tools are commands of the program, as an administrator's are, so a time is that of a whole command. What is in the
//! volumes is stored by calls to the file servers.

mod cell;
mod filling;
mod operations;
mod writer;

pub use cell::OwnCell;
pub use operations::measure;
