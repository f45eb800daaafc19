//! The integration tests of this crate: one program, one module a subject.

mod ciphers;
#[path = "../../afs-rpc/tests/fake/mod.rs"]
mod fake;
mod gate;
mod rxdebug;
mod sockets;
#[path = "../../afs-env/tests/stream_rules/mod.rs"]
mod stream_rules;
mod streams;
mod woken;
