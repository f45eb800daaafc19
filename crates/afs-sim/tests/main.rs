//! The integration tests of this crate: one program, one module a subject.

mod disk;
mod listening_and_sleep;
mod rx_world;
mod store_crash;
#[path = "../../afs-env/tests/stream_rules/mod.rs"]
mod stream_rules;
mod streams;
mod world;
