//! Real sockets, real mounts, real peers.

pub mod cell;
pub mod closing;
pub mod exercise;
pub mod files;
pub mod guest;
pub mod loopback;
pub mod mount;
pub mod needs;
pub mod netns;
pub mod peers;
pub mod process;
pub mod scratch;
pub mod speaker;
pub mod stage;
pub mod wait;
pub mod watchdog;
