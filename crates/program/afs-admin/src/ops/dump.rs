//! `vos dump`: reads a volume as a stream of bytes.

use afs_rpc::BoxFuture;
use afs_wire::ids::{UnixSeconds, VolumeKind};
use bytes::Bytes;

use crate::calls::{Attach, UNPUBLISHED};
use crate::error::AdminResult;
use crate::{Admin, ServerPartition};

/// Destination of a dump.
pub trait DumpSink: Send {
    /// Takes the next bytes. An error message ends the dump.
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), String>>;
}

/// Source of a dump.
pub trait DumpSource: Send {
    /// The next bytes; `None` at the end. An error message ends the restore, and nothing of it is kept.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>>;

    /// Total length, if known.
    fn size(&self) -> Option<u64>;

    /// Goes back to the first byte, or tells that it cannot; then nothing has changed. A restore takes the data path from sources
    /// that can, so that it may begin again if that breaks. An error message ends the restore.
    fn rewind(&mut self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(std::future::ready(Ok(false)))
    }
}

/// Parameters of a dump.
#[derive(Clone, Debug, Default)]
pub struct DumpOptions {
    /// Name or id of a volume of any kind.
    pub volume: String,
    /// Its site; `None` is any site in the VLDB.
    pub place: Option<ServerPartition>,
    /// Only changes since this time; 0 is everything.
    pub since: UnixSeconds,
    /// Dump a temporary clone, so that clients need not wait.
    pub clone: bool,
    /// Only directories that changed.
    pub omit_directories: bool,
}

/// Result of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// The site that was used.
    pub place: ServerPartition,
    /// Length of the dump.
    pub bytes: u64,
}

impl Admin {
    /// Dumps a volume into `sink`. A temporary clone is deleted afterwards or, after an interruption, ten
    /// minutes later.
    ///
    /// # Errors
    /// No such volume, a transaction that holds it, a server that fails, or a sink that takes no more.
    pub async fn dump(&self, options: &DumpOptions, sink: &mut dyn DumpSink) -> AdminResult<Dumped> {
        let doing = format!("Could not dump volume {}", options.volume);
        let group = self.group(&options.volume).await?;
        let place = match options.place {
            Some(place) => place,
            None => self.some_place(&doing, &group)?,
        };
        let source = self.take_existing(place, group.wanted(), Attach::BUSY).await?;
        let bytes = if options.clone {
            let id = self.new_id().await;
            let cloned = match id {
                Ok(id) => source.clone_as(id, &group.name(), VolumeKind::ReadOnly).await.map(|()| id),
                Err(error) => Err(error),
            };
            let clone = source.end_after(cloned).await?;
            let held = self.take_existing(place, clone, Attach::OFFLINE).await?;
            let dumped = async {
                held.set_flags(UNPUBLISHED).await?;
                let bytes = self.read_dump(&held, options.since, options.omit_directories, sink).await?;
                held.delete().await.map(|()| bytes)
            };
            let dumped = dumped.await;
            held.end_after(dumped).await?
        } else {
            let dumped = self.read_dump(&source, options.since, options.omit_directories, sink).await;
            source.end_after(dumped).await?
        };
        Ok(Dumped { place, bytes })
    }
}
