//! The integration tests of this crate: one program, one module a subject.

mod andrew;
mod bulk;
