//! The volume store: vnodes, directories and file data of the volumes of one partition.
//!
//! Rows are in an index ([`afs_kv`]), the bytes of larger files in chunks on a drive ([`afs_drive`]). A
//! change is a closure over a [`VolumeTx`] that runs on the store's one writer, together with others, and is
//! durable when [`Volume::update`] resolves. Data precedes its transaction: a [`DataWriter`] writes the bytes
//! to the drive and makes them durable, and only then [`VolumeTx::store_data`] makes them part of a file;
//! what a crash leaves between the two is garbage that [`VolumeStore::sweep`] frees.
//!
//! Readers see committed, durable state only. Each read has two forms ([`Depth`]): one of memory alone, for
//! threads that must not wait, and one that may wait for the disk.
//!
//! A volume becomes a byte stream, and such a stream a volume, in [`dump`] and [`restore`].
//!
//! Every key ends in an epoch of its volume group, so a clone can freeze an epoch without copying anything
//! ([`VolumeStore::clone_volume`]). A restore writes in an epoch of its own until it is complete
//! ([`Volume::begin_restore`]). Whatever no volume references any longer is deleted in the background
//! ([`VolumeStore::run_background`]). Bytes on disk: `docs/format.md`.

mod background;
mod cache;
mod check_drive;
mod chunk_rows;
mod chunks;
mod claims;
mod codec;
mod compact;
mod compactions;
mod copies;
mod cuts;
mod damage_words;
mod data_reader;
mod data_walk;
mod data_writer;
mod depth;
mod doomed_row;
mod drives;
pub mod dump;
mod error;
mod exchange;
mod extent;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gathering;
mod group;
mod growth;
mod header;
mod held;
mod ids;
mod key;
mod layout;
mod leases;
mod lent;
mod list;
mod located;
mod location;
mod locks;
mod new_data;
mod open_error;
mod read_any;
mod reads;
mod rebuild;
mod record;
mod relocation;
pub mod restore;
mod rows;
mod scrub;
mod series;
mod spec;
mod staged;
mod staging;
mod store;
mod sweep;
mod targets;
mod tx;
mod upgrade;
mod volume;
mod walk;

pub use afs_drive::Usage;
pub use afs_wire::vol::{DataRoute, DriveCount, Lending, Placement};
pub use check_drive::{CheckedDrive, DriveContents, SHOWN_MAX};
pub use claims::{StagedIn, StagingPlaces};
pub use damage_words::DamageWords;
pub use data_reader::{DataReader, Span, WINDOW_SLOTS};
pub use data_writer::{DataWriter, RANGES_MAX};
pub use depth::Depth;
pub use error::VolumeError;
pub use extent::{LITERAL_MAX, SLOT_LEN};
pub use header::VolumeHeader;
pub use ids::{ContentId, Epoch, GroupId};
pub use key::TABLES;
pub use layout::{LaidOut, Layout};
pub use list::ListOutcome;
pub use located::{COPIES_MAX, LocatedChunk};
pub use locks::KeptLock;
pub use new_data::{FILE_LEN_MAX, NewData};
pub use open_error::OpenError;
pub use reads::Reads;
pub use rebuild::{Rebuild, Rebuilt};
pub use record::{VnodeRecord, blocks};
pub use relocation::{Relocated, Relocation};
pub use scrub::{BadData, BadPart, Scrub, ScrubReport, ScrubRound, ScrubState};
pub use series::{ALIKE_MAX, LastList, NumberedList, Sender};
pub use spec::{CloneSpec, VolumeSpec};
pub use staged::{StagedParts, StagedPlace};
pub use staging::{ImageData, Restore, RestoredHeader, VnodeImage};
pub use store::{Config, VolumeStore};
pub use sweep::KEPT_FOR;
pub use tx::{
    Actor, Created, LENT_MAX, Linked, Object, Removed, Rename, Renamed, Replacing, StoreData, VolumeTx,
};
pub use volume::Volume;
