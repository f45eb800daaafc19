//! The integration tests of this crate: one program, one module a subject.

mod captured;
mod dump;
mod fuzzing;
mod properties;
