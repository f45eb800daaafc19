//! `vos dump`: a volume as a stream of bytes.

use afs_rpc::BoxFuture;
use afs_wire::ids::{UnixSeconds, VolumeKind};
use bytes::Bytes;

use crate::calls::{Attach, UNPUBLISHED};
use crate::error::AdminResult;
use crate::{Admin, Place};

/// Where a dump goes.
pub trait DumpSink: Send {
    /// Takes the next bytes. An error, in words, ends the dump.
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), String>>;
}

/// Where a dump comes from.
pub trait DumpSource: Send {
    /// The next bytes; `None` at the end. An error, in words, ends the restore, and nothing of it stays.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Bytes>, String>>;

    /// How many bytes there are, if that is known.
    fn size(&self) -> Option<u64>;
}

/// What is dumped.
#[derive(Clone, Debug, Default)]
pub struct DumpOptions {
    /// Name or number of a volume of any kind.
    pub volume: String,
    /// Where it is; `None` is any place that the VLDB names.
    pub place: Option<Place>,
    /// Only what changed since; 0 is everything.
    pub since: UnixSeconds,
    /// Dump a clone made for this, so that clients need not wait.
    pub clone: bool,
    /// Only the directories that changed.
    pub omit_directories: bool,
}

/// What was dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dumped {
    /// Where it was.
    pub place: Place,
    /// Bytes.
    pub bytes: u64,
}

impl Admin {
    /// Dumps a volume into `sink`. A clone made for it goes with it, or, should this be interrupted, ten minutes later.
    ///
    /// # Errors
    /// No such volume, somebody holds it, a server that does not do it, or a sink that takes no more.
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
