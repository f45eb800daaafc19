//! The integration tests of this crate: one program, one module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail")]

mod cell;
mod crypto_types;
mod crypto_vectors;
#[path = "../../../calls/afs-rpc/tests/fake/mod.rs"]
mod fake;
mod rekey_races;
mod replayed_packets;
mod rxgk_calls;
mod rxgk_capture;
mod rxgk_random_bytes;
mod rxgk_refusals;
mod rxgk_token_bytes;
mod rxgk_vectors;
mod rxkad_calls;
mod rxkad_captures;
mod rxkad_fuzzing;
mod rxkad_handshake;
mod rxkad_keys;
mod rxkad_names;
mod rxkad_vectors;
#[path = "../../../calls/afs-rx/tests/support/mod.rs"]
mod support;
mod suspended;
