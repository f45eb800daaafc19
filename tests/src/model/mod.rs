//! What is allowed to be seen: simple models that histories of a cell are held against.

pub mod names;
pub mod register;
