//! A program of the real world: fetched as Debian has it, built, and looked at from two sides.

pub mod build;
pub mod source;
pub mod tree;
