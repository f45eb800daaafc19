//! The integration tests of this crate: one program, one module a subject.

mod depths;
mod fuzzing;
