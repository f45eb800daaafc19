//! Transactional key-value store: a single writer with group commit, and readers that never wait.
//!
//! A change is durable once it is in the write-ahead log and the log is synced. Many operations share one such sync:
//! [`Kv::submit`] queues them; the writer runs all queued operations as one batch, syncs once, and completes them
//! all. Committed rows stay in memory ([`Snapshot`] reads them there) until the log holds about 16 MiB; a checkpoint
//! then moves them into an ordered table on the medium (redb) in one durable transaction, and the log is overwritten
//! from its start.
//!
//! Readers see only committed and durable data: a batch becomes visible only after its log record has been synced,
//! and before its success is reported.
//!
//! Bytes on the medium are described in `docs/format.md`.

mod backend;
mod base;
mod checkpoint;
mod current_turn;
mod cursor;
mod damage;
mod error;
mod examine;
mod file_medium;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index_walk;
mod kv;
mod log;
mod log_file;
mod log_survey;
mod log_turn;
mod masking;
mod medium;
mod memory_medium;
mod memtable;
mod page;
mod page_header;
mod pages;
mod record;
mod recovery;
mod salvage;
mod snapshot;
mod spare;
mod tables;
mod txn;
mod verify;
mod writer;

pub use cursor::{Range, Row};
pub use damage::{DAMAGE_MAX, Damage, LostBatches, LostRows, Report};
pub use error::{KvError, MAX_OPERATION_BYTES, OpenError, UpdateError};
pub use examine::{RowVisitor, check};
pub use file_medium::FileMedium;
pub use kv::{Config, Done, Kv, Operation, Outcome};
pub use medium::{Blob, Medium};
pub use memory_medium::MemoryMedium;
pub use salvage::{Later, salvage};
pub use snapshot::Snapshot;
pub use txn::{Abandon, Txn};
