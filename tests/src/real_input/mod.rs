//! A real program: its source from Debian, its build, and the comparison of trees.

pub mod build;
pub mod source;
pub mod tree;
