//! The end of a remote drive at the host with the disks.

mod joining;
mod replies;
mod requests;
mod rooms;
mod staging;
mod stores;

pub use joining::{Adopt, JoiningDrive};
pub use staging::STAGED_LIFE;
pub use stores::{ChunkStores, RUN_MAX, Run, STORES_MAX};
