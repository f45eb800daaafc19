//! The integration tests of this crate: one program, one module a subject.

mod fuzzing;
mod s3_server;
mod server;
