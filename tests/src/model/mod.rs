//! Models with which histories of a cell are compared.

pub mod durability;
pub mod names;
pub mod register;
