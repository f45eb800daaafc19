//! Restore: a dump stream into a volume. Source: `docs/protocol/dump.md` "2. Tags" and "3. Order and contents
//! of vnodes".

mod check;
mod error;
mod header;
mod incoming;
mod version;

use std::sync::Arc;

use afs_wire::dump::{DumpReader, Event, Ignored, VnodeEnd, VnodeFields, VolumeFields};
use afs_wire::ids::{Uniquifier, UnixSeconds, VnodeId, VolumeId, VolumeKind, VolumeName};
use bytes::Bytes;

use crate::error::VolumeError;
use crate::staging::Restore;
use crate::volume::Volume;

pub use error::RestoreError;
use incoming::Incoming;

/// Attributes of the restored volume that override the dump's.
#[derive(Clone, Debug)]
pub struct RestoreAs {
    /// Its name.
    pub name: VolumeName,
    /// Its kind.
    pub kind: VolumeKind,
    /// The group's read-write volume; 0 leaves it unchanged.
    pub parent: VolumeId,
    /// The group's read-only volume.
    pub clone: VolumeId,
    /// The volume's own use counts stay; otherwise they start at zero.
    pub keep_usage: bool,
    /// The volume stays in or out of service; otherwise the dump decides, and that of a temporary clone says
    /// out of service.
    pub keep_service: bool,
}

/// Summary of a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The time from which the dump has changes; 0 for a full one.
    pub since: UnixSeconds,
    /// Vnodes that the dump contained completely.
    pub vnodes: u64,
    /// Vnodes that stayed unchanged.
    pub unchanged: u64,
    /// Length of the stream.
    pub bytes: u64,
    /// Tags and data that were skipped.
    pub ignored: u64,
}

/// Restores a dump into a volume as its bytes arrive, in memory bounded by a few slots of file data and one
/// directory.
///
/// A full dump replaces the volume's content. With an incremental one, vnodes that are only marked stay, and
/// those that it does not mention are deleted. Nothing is visible before [`RestoreStream::finish`], which
/// makes all of it visible at once. After an error, or when this is dropped before, the volume is unchanged.
pub struct RestoreStream {
    volume: Arc<Volume>,
    into: RestoreAs,
    reader: DumpReader,
    restore: Option<Restore>,
    /// The time up to which the dump has changes.
    until: UnixSeconds,
    header: Option<Box<VolumeFields>>,
    vnode: Option<Incoming>,
    has_root: bool,
    report: Restored,
    failed: Option<RestoreError>,
}

impl RestoreStream {
    /// A restore that waits for the first bytes.
    pub fn new(volume: Arc<Volume>, into: RestoreAs) -> Self {
        Self {
            volume,
            into,
            reader: DumpReader::default(),
            restore: None,
            until: UnixSeconds(0),
            header: None,
            vnode: None,
            has_root: false,
            report: Restored::default(),
            failed: None,
        }
    }

    /// Takes the next bytes of the dump, in pieces of any size.
    ///
    /// # Errors
    /// [`RestoreError`]; every later call returns the same again.
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), RestoreError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.take(&bytes).await;
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.abandon().await;
        }
        result
    }

    /// Ends the stream: makes the dump the volume's content, if it was complete.
    ///
    /// # Errors
    /// [`RestoreError`].
    pub async fn finish(mut self) -> Result<Restored, RestoreError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let Err(error) = self.check_whole() {
            self.abandon().await;
            return Err(error);
        }
        let (Some(restore), Some(fields)) = (self.restore.take(), self.header.take()) else {
            return Err(VolumeError::Invalid.into());
        };
        let header = header::restored(&fields, &self.into, self.until);
        restore.commit(header).await?;
        self.report.bytes = self.reader.offset();
        Ok(self.report)
    }

    fn check_whole(&self) -> Result<(), RestoreError> {
        self.reader.finish()?;
        if self.has_root {
            return Ok(());
        }
        Err(self.refuse(VnodeId::ROOT, "the volume's root directory is not in the dump"))
    }

    async fn take(&mut self, bytes: &Bytes) -> Result<(), RestoreError> {
        let mut rest: &[u8] = bytes;
        while let Some(event) = self.reader.next(&mut rest)? {
            self.event(event, bytes).await?;
        }
        Ok(())
    }

    async fn event(&mut self, event: Event<'_>, bytes: &Bytes) -> Result<(), RestoreError> {
        match event {
            Event::Dump(header) => {
                (self.report.since, self.until) = (header.since(), header.until());
                self.restore = Some(self.volume.begin_restore(header.since().0 == 0).await?);
            }
            Event::Volume(fields) => self.header = Some(fields),
            Event::Vnode(vnode, unique) => self.vnode = Some(Incoming::new(vnode, unique)),
            Event::Length(len) => {
                let (restore, vnode) = (staged(&mut self.restore)?, coming(&mut self.vnode)?);
                vnode.begin_data(len, restore)?;
            }
            Event::Data(part) => coming(&mut self.vnode)?.push(bytes.slice_ref(part)).await?,
            Event::Hole(len) => coming(&mut self.vnode)?.push_hole(len).await?,
            Event::VnodeEnd(end) => self.end_of_vnode(end).await?,
            Event::Ignored(offset, what) => self.note_ignored(offset, what),
            Event::End => {}
        }
        Ok(())
    }

    async fn end_of_vnode(&mut self, end: VnodeEnd) -> Result<(), RestoreError> {
        let Some(vnode) = self.vnode.take() else { return Err(VolumeError::Invalid.into()) };
        self.has_root |= vnode.vnode == VnodeId::ROOT;
        match end {
            VnodeEnd::Bare => self.keep(vnode.vnode, vnode.unique).await,
            VnodeEnd::Full(fields) => self.put(vnode, *fields).await,
        }
    }

    /// A vnode that changed long ago must exist here, or the dump continues from another state than the
    /// volume's. In a merged dump an earlier part may have brought it.
    async fn keep(&mut self, vnode: VnodeId, unique: Uniquifier) -> Result<(), RestoreError> {
        let brought = staged(&mut self.restore)?.written(vnode)?;
        let here = match brought {
            Some(brought) => Some(brought),
            None => self.volume.vnode(vnode)?.map(|here| here.unique),
        };
        let kept = match here.is_none_or(|here| here == unique) {
            true if brought.is_some() => Ok(()),
            true => staged(&mut self.restore)?.keep(vnode).await,
            false => Err(VolumeError::NoVnode),
        };
        match kept {
            Ok(()) => self.report.unchanged += 1,
            Err(VolumeError::NoVnode) => return Err(self.refuse(vnode, NOT_THE_BASE)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn put(&mut self, vnode: Incoming, fields: VnodeFields) -> Result<(), RestoreError> {
        if let Err(what) = check::class(vnode.vnode, &fields) {
            return Err(self.refuse(vnode.vnode, what));
        }
        let (number, unique) = (vnode.vnode, vnode.unique);
        if let Err(what) = vnode.check(&fields) {
            return Err(self.refuse(number, what));
        }
        let here = self.volume.vnode(number)?;
        let version = version::of(here.as_deref(), unique, vnode.len(), &fields);
        let image = check::image(number, unique, fields, version);
        let restore = staged(&mut self.restore)?;
        let data = vnode.into_data(image.kind, restore).await?;
        restore.put(image, data).await?;
        self.report.vnodes += 1;
        Ok(())
    }

    fn note_ignored(&mut self, offset: u64, what: Ignored) {
        self.report.ignored += 1;
        if self.report.ignored <= LOGGED_MAX {
            tracing::warn!(volume = %self.volume.id(), offset, ?what, "a part of a dump is not understood and skipped");
        }
    }

    fn refuse(&self, vnode: VnodeId, what: impl Into<String>) -> RestoreError {
        RestoreError::Vnode { vnode, offset: self.reader.offset(), what: what.into() }
    }

    async fn abandon(&mut self) {
        self.vnode = None;
        if let Some(restore) = self.restore.take()
            && let Err(error) = restore.abandon().await
        {
            // The rest is deleted when the store is opened the next time.
            tracing::warn!(volume = %self.volume.id(), %error, "an abandoned restore was not taken away at once");
        }
    }
}

fn staged(restore: &mut Option<Restore>) -> Result<&mut Restore, RestoreError> {
    restore.as_mut().ok_or(RestoreError::Volume(VolumeError::Invalid))
}

fn coming(vnode: &mut Option<Incoming>) -> Result<&mut Incoming, RestoreError> {
    vnode.as_mut().ok_or(RestoreError::Volume(VolumeError::Invalid))
}

const NOT_THE_BASE: &str = "the dump says that it is unchanged, but the volume does not have it: \
     an incremental dump needs the volume as it was when the dump before it was made";
/// Skipped items of one dump that are logged.
const LOGGED_MAX: u64 = 8;
