//! The integration tests of this crate: one program, one module a subject.

mod basics;
mod crash;
mod fuzzing;
mod parts;
mod planted;
mod threads;
mod upgrade;
