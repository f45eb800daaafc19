//! Conversations of the data path that a script of bytes decides: one end is of the crate, the other says what the script says. The
//! tests choose scripts by seed (`sessions.rs`), the fuzz targets by what they reach (`fuzz/targets.rs`).

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod client_end;
mod client_moves;
mod drive_end;
mod drive_moves;
mod drive_player;
mod drive_requests;
mod heard;
mod issued;
mod line;
mod reached;
mod script;
mod users;
mod watched;
mod watched_chunks;

pub use client_end::play_to_client;
pub use drive_end::play_to_drive;
pub use reached::Reached;

use std::net::SocketAddr;
use std::time::Duration;

/// Where the end listens that is not the client.
const AT: ([u8; 4], u16) = ([10, 0, 0, 1], 7005);

fn at() -> SocketAddr {
    SocketAddr::from(AT)
}

/// Longest time that anything may take: connections and requests that make no progress end in less than two minutes.
const PATIENCE: Duration = Duration::from_secs(300);
