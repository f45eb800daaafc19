//! The integration tests of this crate: one program, one module a subject.

mod cell;
mod fuzzing;
mod hostile;
mod login;
