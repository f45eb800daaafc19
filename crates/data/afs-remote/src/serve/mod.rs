//! The end of a remote drive at the host with the disks.

mod replies;
mod requests;
mod rooms;
mod staging;
mod stores;

pub use staging::STAGED_LIFE;
pub use stores::{Adopt, ChunkStores, RUN_MAX, Run, STORES_MAX};
