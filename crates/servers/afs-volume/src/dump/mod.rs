//! Dump: a volume as a stream. Source: `docs/protocol/dump.md` "3. Order and contents of vnodes".

mod fields;

use std::collections::VecDeque;
use std::sync::Arc;

use afs_wire::dump::{BARE_VNODE_LEN, DumpWriter, END_LEN, vnode_len};
use afs_wire::fs::FileKind;
use afs_wire::ids::{UnixSeconds, VnodeId};
use bytes::Bytes;

use crate::data_reader::{DataReader, Span};
use crate::error::VolumeError;
use crate::record::VnodeRecord;
use crate::volume::Volume;

/// Options of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumpOptions {
    /// Vnodes changed at this time or later are dumped completely, the others as a mark that they still
    /// exist. 0 dumps everything.
    pub since: UnixSeconds,
    /// Directories are dumped completely, however old.
    pub all_directories: bool,
}

impl DumpOptions {
    fn wants(self, record: &VnodeRecord) -> bool {
        record.server_mod_time.seconds() >= self.since || self.all_directories && record.is_directory()
    }
}

/// Most bytes of holes written as zeros, in all files of a dump: 2 TiB, the most that the counters of AFS,
/// KiB in 31 bits, permit for a volume.
pub const ZEROS_MAX: u64 = 1 << 41;

/// Generates the bytes of a dump as they are requested, in memory bounded by a few slots of file data.
///
/// The dump of a read-only or backup volume that is not recloned meanwhile is of one state. For a read-write
/// volume the caller keeps writers out until the end; a file that changes during the dump ends it with
/// [`VolumeError::Busy`].
///
/// The dumps of AFS have no holes: holes become zeros, and a dump with more than [`ZEROS_MAX`] of them fails
/// at the start, with [`VolumeError::Sparse`]. A dump for a reader that has declared support for holes keeps
/// them.
pub struct VolumeDump {
    volume: Arc<Volume>,
    options: DumpOptions,
    /// Restricts the dump to the difference from this state.
    base: Option<Arc<Volume>>,
    writer: DumpWriter,
    ready: VecDeque<Bytes>,
    vnodes: Vnodes,
    data: Option<Data>,
    holes: Holes,
    ended: bool,
}

/// The remaining data of the current vnode.
struct Data {
    reader: DataReader,
    /// With holes kept: the zeros before the next piece. `None` if zeros are written as bytes.
    hole: Option<u64>,
}

/// Treatment of holes.
enum Holes {
    /// Written as zeros, after a check that there are not too many: the count so far.
    Counted(Box<Vnodes>, u64),
    /// Written as zeros.
    Zeros,
    /// Written as holes.
    Kept,
}

impl VolumeDump {
    /// A dump of the difference from an older state of the volume, which must not change meanwhile. States
    /// that share no rows, as before and after a full restore, differ in everything.
    pub fn difference(volume: Arc<Volume>, base: Arc<Volume>) -> Self {
        // 0 would say that the whole volume follows.
        let since = UnixSeconds(base.header().creation_date.0.max(1));
        let mut dump = Self::new(volume, DumpOptions { since, all_directories: false });
        dump.base = Some(base);
        dump
    }

    /// A dump, which begins with the headers.
    pub fn new(volume: Arc<Volume>, options: DumpOptions) -> Self {
        let mut writer = DumpWriter::default();
        write_headers(&mut writer, &volume, options);
        Self {
            volume,
            options,
            base: None,
            writer,
            ready: VecDeque::new(),
            vnodes: Vnodes::default(),
            data: None,
            holes: Holes::Counted(Box::default(), 0),
            ended: false,
        }
    }

    /// Keeps holes, for a reader that supports them (`docs/protocol/extensions.md` "Dumps with holes").
    pub fn keeping_holes(self) -> Self {
        Self { holes: Holes::Kept, ..self }
    }

    /// Writes times with nanoseconds, for a reader that supports them (`docs/protocol/extensions.md` "Times").
    pub fn with_fine_times(mut self) -> Self {
        self.writer.with_fine_times();
        self
    }

    /// Does the work before the first byte: if holes become zeros it reads the record of every vnode.
    /// Otherwise [`VolumeDump::next`] does it.
    pub fn prepare(mut self) -> Result<Self, VolumeError> {
        self.count_holes().map(|()| self)
    }

    /// The next bytes, at least one and at most a mebibyte; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Bytes>, VolumeError> {
        self.count_holes()?;
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Ok(Some(bytes));
            }
            if self.writer.pending() >= BATCH_LEN || self.ended && self.writer.pending() > 0 {
                return Ok(Some(self.writer.take().into()));
            }
            if self.ended {
                return Ok(None);
            }
            self.step().await?;
        }
    }

    async fn step(&mut self) -> Result<(), VolumeError> {
        if self.data.is_some() {
            return self.step_in_data().await;
        }
        match self.vnodes.next(&self.volume)? {
            Some(record) if self.wants(&record)? => self.begin_vnode(&record)?,
            Some(record) => self.writer.bare_vnode(record.vnode, record.unique),
            None => {
                self.writer.end();
                self.ended = true;
            }
        }
        Ok(())
    }

    async fn step_in_data(&mut self) -> Result<(), VolumeError> {
        let Some(Data { reader, hole }) = &mut self.data else { return Ok(()) };
        let Some(hole) = hole else {
            match reader.next().await? {
                Some(bytes) => self.put_data(bytes),
                None => self.data = None,
            }
            return Ok(());
        };
        match reader.next_span().await? {
            Some(Span::Hole(len)) => *hole += len,
            Some(Span::Bytes(bytes)) => {
                self.writer.piece(std::mem::take(hole), bytes.len() as u64);
                self.put_data(bytes);
            }
            None => {
                if *hole > 0 {
                    self.writer.piece(*hole, 0);
                }
                self.data = None;
            }
        }
        Ok(())
    }

    fn count_holes(&mut self) -> Result<(), VolumeError> {
        while let Holes::Counted(vnodes, holes) = &mut self.holes {
            let Some(record) = vnodes.next(&self.volume)? else {
                self.holes = Holes::Zeros;
                break;
            };
            let sum = holes.saturating_add(holes_of(&record));
            if !self.wants(&record)? {
                continue;
            }
            if sum > ZEROS_MAX {
                return Err(VolumeError::Sparse { vnode: record.vnode, length: record.length, holes: sum });
            }
            if let Holes::Counted(_, holes) = &mut self.holes {
                *holes = sum;
            }
        }
        Ok(())
    }

    fn wants(&self, record: &VnodeRecord) -> Result<bool, VolumeError> {
        let Some(base) = &self.base else { return Ok(self.options.wants(record)) };
        // Content ids are unique within one group only.
        if base.header().group != self.volume.header().group {
            return Ok(true);
        }
        Ok(base.vnode(record.vnode)?.is_none_or(|before| !before.is_same_state(record)))
    }

    fn begin_vnode(&mut self, listed: &VnodeRecord) -> Result<(), VolumeError> {
        let data = self.volume.read_data(listed.fid(self.volume.id()), 0, u64::MAX)?;
        // The reader's record belongs to the version whose data follow.
        let record = data.record();
        let (fields, len) = (fields::of_vnode(record), data.remaining());
        let sparse = matches!(self.holes, Holes::Kept) && holes_of(record) >= HOLE_MIN;
        if sparse {
            self.writer.sparse_vnode(record.vnode, record.unique, &fields, len);
        } else {
            self.writer.vnode(record.vnode, record.unique, &fields, len);
        }
        self.data = Some(Data { reader: data, hole: sparse.then_some(0) });
        Ok(())
    }

    /// Joins small pieces with their neighbours.
    fn put_data(&mut self, bytes: Bytes) {
        if bytes.len() < BATCH_LEN {
            self.writer.data(&bytes);
            return;
        }
        let before = self.writer.take();
        if !before.is_empty() {
            self.ready.push_back(before.into());
        }
        self.ready.push_back(bytes);
    }
}

/// Length in bytes of a dump with all directories: of the changes since a time, or of everything (0). Exact
/// as long as the volume does not change. Reads the record of every vnode.
pub fn dump_len(volume: &Volume, since: UnixSeconds) -> Result<u64, VolumeError> {
    let options = DumpOptions { since, all_directories: true };
    let mut writer = DumpWriter::default();
    write_headers(&mut writer, volume, options);
    let mut len = writer.pending() as u64 + END_LEN;
    let mut vnodes = Vnodes::default();
    while let Some(record) = vnodes.next(volume)? {
        len += match options.wants(&record) {
            true => vnode_len(&fields::of_vnode(&record), record.length),
            false => BARE_VNODE_LEN,
        };
    }
    Ok(len)
}

fn write_headers(writer: &mut DumpWriter, volume: &Volume, options: DumpOptions) {
    let header = volume.header();
    writer.header(&fields::of_dump(&header, options.since));
    writer.volume(&fields::of_volume(&header));
}

/// Bytes of a file that are not stored.
fn holes_of(record: &VnodeRecord) -> u64 {
    if record.kind == FileKind::File { record.length.saturating_sub(record.stored) } else { 0 }
}

/// Iterator over a volume's vnodes: directories first, then the rest, each by ascending number.
#[derive(Default)]
struct Vnodes {
    page: VecDeque<VnodeRecord>,
    /// The last number that was listed.
    last: VnodeId,
    files: bool,
    ended: bool,
}

impl Vnodes {
    fn next(&mut self, volume: &Volume) -> Result<Option<VnodeRecord>, VolumeError> {
        while self.page.is_empty() && !self.ended {
            self.page = volume.vnodes_after(!self.files, self.last, PAGE_VNODES)?.into();
            match self.page.back() {
                Some(record) => self.last = record.vnode,
                None if self.files => self.ended = true,
                None => (self.files, self.last) = (true, VnodeId(0)),
            }
        }
        Ok(self.page.pop_front())
    }
}

/// Bytes gathered before they are returned.
const BATCH_LEN: usize = 64 << 10;
/// Files with fewer bytes of holes are dumped without holes.
const HOLE_MIN: u64 = 64 << 10;
/// Records that are read together.
const PAGE_VNODES: usize = 256;
