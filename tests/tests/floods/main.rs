//! Floods of every kind against a server that honest clients use: none of their calls fails, the server's memory stays within a
//! bound that follows from its limits, and nobody is sent much in whose name others ask.
//!
//! `ANDREW_FLOOD_SECONDS` is how long each of the two floods of a test lasts (4), `ANDREW_FLOOD_RATE` its datagrams a
//! second, and `ANDREW_FLOOD_P99_MAX` how many times as long as without a flood honest calls may take; without it, that is only
//! printed. With `ANDREW_FLOOD_CONTROL=1` the same datagrams go to a sink first, so that what the attacker's program costs is told
//! apart from what the server does. `scripts/soak-floods` sets them for a machine with nothing else to do.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

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
