//! Drives on other hosts, both ends: [`RemoteDrive`] at a file server, [`ChunkStores`] at the host with the disks.
//!
//! A remote drive knows chunks, capabilities and its key. It knows no names, users, volumes and access lists; the file
//! server, which has the drive's key, is the one that may use all chunks of its stores. Both ends speak the protocol of
//! the data path (`docs/protocol/data-path.md`); `docs/decisions/2026-11-23-drives.md` tells why.

mod claiming;
mod connection;
mod direct;
mod drive;
mod giving;
mod keys;
mod managing;
mod options;
mod reading;
mod serve;
mod sweeping;
mod writing;

pub use direct::{DirectDrive, Sealing, TELL_MAX};
pub use drive::RemoteDrive;
pub use giving::{GiveError, join, rekey};
pub use keys::DriveKeys;
pub use options::RemoteOptions;
pub use serve::{Adopt, ChunkStores, RUN_MAX, Run, STAGED_LIFE, STORES_MAX};
