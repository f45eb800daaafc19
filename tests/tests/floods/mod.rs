//! Floods of every kind against a server that honest clients use: none of their calls fails, the server's memory stays
//! within a bound that follows from its limits, and no victim of forged addresses is sent much.
//!
//! `ANDREW_FLOOD_SECONDS` is how long each of the two floods of a test lasts (4), `ANDREW_FLOOD_RATE` its datagrams a
//! second, and `ANDREW_FLOOD_P99_MAX` the largest factor by which a flood may lengthen honest calls; without it, the
//! factor is only printed. With `ANDREW_FLOOD_CONTROL=1` the same datagrams go to a sink first, which separates the
//! cost of the attacker's program from that of the server. `scripts/soak-floods` sets them for a machine with no other
//! work.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod addresses;
mod admission;
mod amplification;
mod breaks;
mod calls;
mod client;
mod crowd;
mod datagrams;
mod flood;
mod honest_clients;
mod hosts;
mod latencies;
mod login;
mod setup;
mod sink;
