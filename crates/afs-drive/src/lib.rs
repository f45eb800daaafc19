//! Drives: where the bytes of files live, as immutable chunks.
//!
//! A chunk is written once, has a name that its drive gives it, carries a checksum, and is discarded when no file
//! has it any longer. A drive knows nothing of files: the volume store holds the references, writes
//! chunks, has the drive [`sync`](Drive::sync), and only then commits the transaction that makes them a
//! file. What a crash leaves between the two is garbage, found by [`Drive::sweep`].
//!
//! [`SegmentDrive`] is the drive of this crate: append-only segments on a [`SegmentStore`], which is a directory of
//! files ([`FileDrive`]), memory ([`MemoryDrive`]), or a simulated disk. Bytes on disk: `docs/format.md`.

mod chunk;
mod disk_folder;
mod drive;
mod error;
mod file_segments;
mod folder;
mod header;
mod memory_segments;
mod segment_drive;
mod segment_store;
mod segments;
mod sweep;

pub use chunk::{ChunkId, ChunkRef, DriveId, MAX_CHUNK_LEN};
pub use disk_folder::DiskFolder;
pub use drive::{BoxFuture, Drive, LiveChunks, SweepReport, Usage};
pub use error::DriveError;
pub use file_segments::FileSegments;
pub use folder::{Folder, FolderFile};
pub use memory_segments::MemorySegments;
pub use segment_drive::{FileDrive, MemoryDrive, SegmentDrive};
pub use segment_store::SegmentStore;
