//! A drive that is a bucket: chunks packed into the objects of an S3-compatible store.
//!
//! [`BucketDrive`] is an [`afs_drive::Drive`]. It gathers chunks in *packs*, which are put as one object each when they are
//! full and at a sync; the id of a chunk is its pack and its place in it. Everything that decides is here and needs no socket: the
//! store is behind the trait [`Bucket`], which [`MemoryBucket`] implements in memory and `afs-s3` over HTTP.
//!
//! Objects and their bytes: `docs/format.md` "The bucket". Why it is so: `docs/decisions/2026-11-23-buckets.md`.

mod addresses;
mod admission;
mod bucket;
mod cache;
mod claim;
mod drive;
mod flush;
mod gathering;
mod listing;
mod memory_bucket;
mod names;
mod pack;
mod packs;
mod reading;
mod removal;
mod requests;
mod retry;
mod sweep;
mod tally;
mod tickets;

#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;

pub use admission::Admission;
pub use bucket::{Bucket, Failure, Listed, Page, Reply};
pub use drive::{BucketDrive, Config};
pub use memory_bucket::MemoryBucket;
pub use tickets::OwnerId;
