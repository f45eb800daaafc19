//! Drives: storage of file data as immutable, checksummed chunks.
//!
//! A chunk is written once, has an id that its drive gives it, carries a checksum, and is discarded when no file
//! references it any longer. A drive knows nothing of files: the volume store holds the references, writes chunks,
//! has the drive [`sync`](Drive::sync), and only then commits the transaction that makes them part of a file. A crash
//! between the two leaves garbage, which [`Drive::sweep`] finds.
//!
//! [`SegmentDrive`] is the drive of this crate: append-only segments on a [`SegmentStore`], which is a directory of
//! files ([`FileDrive`]), memory ([`MemoryDrive`]), or a simulated disk. Bytes on disk: `docs/format.md`. Drives on other
//! hosts are in a crate of their own, `afs-remote`.

mod addressed;
mod chunk;
mod disk_folder;
mod drive;
mod error;
mod file_segments;
mod folder;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod header;
mod lost;
mod memory_segments;
mod pieces;
mod scan;
mod segment_drive;
mod segment_store;
mod segments;
mod sweep;
mod unclaimed;
mod unfreed;

pub use addressed::{Addressed, ChunkAddress};
pub use chunk::{ChunkId, ChunkRef, DriveId, MAX_CHUNK_LEN};
pub use disk_folder::DiskFolder;
pub use drive::{BoxFuture, Drive, LiveChunks, Returned, StagedChunks, SweepReport, Usage};
pub use error::DriveError;
pub use file_segments::FileSegments;
pub use folder::{Folder, FolderFile};
pub use header::BLOCK;
pub use lost::LostDrive;
pub use memory_segments::MemorySegments;
pub use pieces::Pieces;
pub use scan::{BAD_MAX, BadPart, ScanReport};
pub use segment_drive::{FileDrive, MemoryDrive, SegmentDrive};
pub use segment_store::SegmentStore;
pub use unclaimed::Unclaimed;
