//! Models with which histories of a cell are compared.

pub mod names;
pub mod register;
