//! The integration tests of this crate: one program, one module a subject.

mod interrupted;
mod real;
