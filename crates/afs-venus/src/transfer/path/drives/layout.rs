//! Layout of a file as the file server told it, checked: nothing of it can be out of bounds afterwards.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_datapath::capability::{Binding, DriveId, Generation};
use afs_drive::{ChunkRef, MAX_CHUNK_LEN};
use afs_rpc::Instant;
use afs_wire::fs::{ADDRESSED, COMMANDED, GetLayoutReply, LayoutCopy, LayoutDrive, LayoutPart};
use afs_wire::xdr::{Decode, Fixed};

use super::super::capabilities::{Given, Use};
use super::super::grants::given;
use super::super::offer::Offer;
use super::sites::Site;
use crate::config::DataPathConfig;

/// Longest time for which it is believed that chunks are in a bucket.
const LAYOUT_LIFE_MAX: Duration = Duration::from_secs(600);
/// Most bytes that are read at once.
const STEP: u64 = 1 << 20;

/// Where bytes of one version of a file are.
pub(super) struct Layout {
    /// The bytes of which it tells.
    pub range: Range<u64>,
    parts: Vec<Part>,
    /// The drives, each with the generation of the oldest binding there.
    sites: Vec<(Arc<Site>, Generation)>,
    /// When the file server is asked again where its chunks in buckets are; `None` without any.
    ends: Option<Instant>,
}

/// Bytes that are together.
pub(super) struct Part {
    range: Range<u64>,
    /// None for bytes that only the file server gives.
    pub copies: Vec<PartCopy>,
}

/// A chunk in which a part is.
pub(super) struct PartCopy {
    pub place: Place,
    pub chunk: ChunkRef,
    offset: u32,
    is_bad: AtomicBool,
}

/// Where a chunk is, and why it is sent.
pub(super) enum Place {
    Drive(Arc<Site>, Permission),
    /// A bucket of this id, by addresses that the file server signs.
    Bucket(DriveId),
}

/// A place in the list of drives that can be used from here.
enum Listed {
    Drive(Arc<Site>),
    Bucket { id: DriveId, ends: Instant },
}

/// Why the drive sends the chunk.
pub(super) enum Permission {
    /// It is bound to the group of the capability.
    Bound(Binding),
    /// The file server commands each transfer, when it is asked.
    Commanded,
}

/// How the next bytes are read.
pub(super) enum Segment<'a> {
    /// So many zeros.
    Hole(u64),
    /// So many bytes at the file server.
    Server(u64),
    /// So many bytes of a part, at a position in it.
    Drives { part: &'a Part, at: u64, length: u64 },
}

/// Who was asked from where on, and when.
pub(super) struct Asked {
    pub start: u64,
    pub called: IpAddr,
    pub at: Instant,
    /// Whether buckets are read from here.
    pub buckets: bool,
}

impl Layout {
    /// What the file server has replied. `None` for what contradicts itself. Copies at drives that cannot be used from here are left
    /// out; `site` knows those of capabilities.
    pub fn new(
        reply: &GetLayoutReply,
        asked: &Asked,
        config: &DataPathConfig,
        mut site: impl FnMut(Offer, Given) -> Option<Arc<Site>>,
    ) -> Option<Layout> {
        let end = reply.end;
        if end <= asked.start || end > i64::MAX as u64 {
            return None;
        }
        let sites = reply.drives.iter().map(|drive| listed(drive, asked, config, &mut site));
        let sites: Vec<_> = sites.collect();
        let mut parts: Vec<Part> = Vec::with_capacity(reply.parts.len());
        for told in reply.parts.iter() {
            let part = part(told, &sites)?;
            if parts.last().is_some_and(|before| part.range.start < before.range.end) {
                return None;
            }
            parts.push(part);
        }
        let ends = sites.iter().flatten().filter_map(Listed::ends).min();
        let with_oldest = |site: Arc<Site>| {
            let oldest = oldest(&parts, &site);
            (site, oldest)
        };
        let has_any = sites.iter().any(Option::is_some);
        let sites: Vec<_> = sites.into_iter().flatten().filter_map(Listed::site).map(with_oldest).collect();
        has_any.then_some(Layout { range: asked.start..end, parts, sites, ends })
    }

    /// One without bytes at a drive.
    #[cfg(test)]
    pub fn of_holes(range: Range<u64>, parts: usize) -> Layout {
        let part = |n| Part { range: range.start + n..range.start + n + 1, copies: Vec::new() };
        Layout {
            parts: (0..parts as u64).map(part).collect(),
            range: range.clone(),
            sites: Vec::new(),
            ends: None,
        }
    }

    /// The drives, each with the generation of the oldest binding there.
    pub fn sites(&self) -> &[(Arc<Site>, Generation)] {
        &self.sites
    }

    /// Whether what it says of buckets is too old.
    pub fn is_over(&self, now: Instant) -> bool {
        self.ends.is_some_and(|ends| now >= ends)
    }

    /// How many parts it has: its size.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether bytes of a range are at a drive.
    pub fn has_copies(&self, range: &Range<u64>) -> bool {
        let inside =
            self.parts.iter().filter(|part| part.range.start < range.end && range.start < part.range.end);
        inside.into_iter().any(|part| {
            let length = part.range.end.min(range.end) - part.range.start.max(range.start);
            part.copies.iter().any(|copy| copy.is_worth(length))
        })
    }

    /// How the bytes of a range that is not empty begin; `None` if it does not tell.
    pub fn segment(&self, range: &Range<u64>) -> Option<Segment<'_>> {
        let at = range.start;
        let end = range.end.min(self.range.end).min(at.saturating_add(STEP));
        if !self.range.contains(&at) || end <= at {
            return None;
        }
        let next = self.parts.partition_point(|part| part.range.end <= at);
        Some(match self.parts.get(next) {
            None => Segment::Hole(end - at),
            Some(part) if part.range.start > at => Segment::Hole(end.min(part.range.start) - at),
            Some(part) => part.segment(at, end.min(part.range.end) - at),
        })
    }
}

impl Part {
    /// Its first byte in the file.
    pub fn start(&self) -> u64 {
        self.range.start
    }

    fn segment(&self, at: u64, length: u64) -> Segment<'_> {
        match self.copies.iter().any(|copy| copy.is_worth(length)) {
            true => Segment::Drives { part: self, at: at - self.range.start, length },
            false => Segment::Server(length),
        }
    }
}

impl Part {
    /// The copies in the order in which they are read: those that gave other bytes than they should, or none, are the last.
    pub fn in_order(&self) -> impl Iterator<Item = &PartCopy> {
        let is_bad = |copy: &&PartCopy| copy.is_bad.load(Ordering::Relaxed);
        let good = self.copies.iter().filter(move |copy| !is_bad(copy));
        good.chain(self.copies.iter().filter(is_bad))
    }
}

impl PartCopy {
    /// It is the last one to be read from now on.
    pub fn note_bad(&self) {
        self.is_bad.store(true, Ordering::Relaxed);
    }

    /// Whether so many bytes of it are to be read here. A bucket gives whole chunks alone: for less than half of one it is the file
    /// server that is read, which keeps a chunk that it reads in parts.
    pub fn is_worth(&self, length: u64) -> bool {
        match self.place {
            Place::Drive(..) => true,
            Place::Bucket(_) => length.saturating_mul(2) >= self.chunk.len.into(),
        }
    }

    /// The range of the chunk that has so many bytes of the part from a position in it.
    pub fn range(&self, at: u64, length: u64) -> Option<Range<u32>> {
        let start = self.offset.checked_add(u32::try_from(at).ok()?)?;
        Some(start..start.checked_add(u32::try_from(length).ok()?)?)
    }
}

impl Listed {
    /// When it is asked about again; a drive's capability is renewed instead.
    fn ends(&self) -> Option<Instant> {
        match self {
            Listed::Drive(_) => None,
            Listed::Bucket { ends, .. } => Some(*ends),
        }
    }

    fn site(self) -> Option<Arc<Site>> {
        match self {
            Listed::Drive(site) => Some(site),
            Listed::Bucket { .. } => None,
        }
    }
}

/// A drive or a bucket of a reply; `None` if it cannot be used from here.
fn listed(
    told: &LayoutDrive,
    asked: &Asked,
    config: &DataPathConfig,
    site: &mut impl FnMut(Offer, Given) -> Option<Arc<Site>>,
) -> Option<Listed> {
    if is_bucket(told) {
        return bucket(told, asked);
    }
    let (offer, given) = used(told, asked, config)?;
    site(offer, given).map(Listed::Drive)
}

fn is_bucket(told: &LayoutDrive) -> bool {
    told.address.is_unspecified() && told.port == 0 && told.capability.arguments.is_empty()
}

fn bucket(told: &LayoutDrive, asked: &Asked) -> Option<Listed> {
    let life = Duration::from_secs(told.capability.seconds.into()).min(LAYOUT_LIFE_MAX);
    let id = DriveId(u128::from_be_bytes(told.drive.0));
    (asked.buckets && !life.is_zero()).then_some(Listed::Bucket { id, ends: asked.at + life })
}

/// A drive of a reply, with its capability; `None` if it cannot be used from here.
fn used(told: &LayoutDrive, asked: &Asked, config: &DataPathConfig) -> Option<(Offer, Given)> {
    let offer = Offer::of_layout(told, asked.called, config)?;
    Some((offer, given(&told.capability, Use::Read, asked.at)?))
}

/// The generation of the oldest binding at a drive.
fn oldest(parts: &[Part], site: &Arc<Site>) -> Generation {
    let copies = parts.iter().flat_map(|part| &part.copies);
    let bound = copies.filter_map(|copy| match &copy.place {
        Place::Drive(there, Permission::Bound(binding)) if Arc::ptr_eq(there, site) => {
            Some(binding.terms.generation)
        }
        _ => None,
    });
    bound.min().unwrap_or(Generation(u64::MAX))
}

fn part(told: &LayoutPart, sites: &[Option<Listed>]) -> Option<Part> {
    let end = told.start.checked_add(told.length.into())?;
    let mut copies = Vec::new();
    for copy in told.copies.iter() {
        // A place that is none is a contradiction; a drive that cannot be used is not.
        if let Some(site) = sites.get(copy.drive as usize)? {
            copies.push(part_copy(copy, told.length, site)?);
        }
    }
    (told.length > 0 && end <= i64::MAX as u64).then_some(Part { range: told.start..end, copies })
}

fn part_copy(told: &LayoutCopy, length: u32, site: &Listed) -> Option<PartCopy> {
    let chunk = ChunkRef::from_bytes(&told.chunk.0)?;
    let (offset, end) = (told.offset, told.offset.checked_add(length)?);
    let is_inside = end <= chunk.len && chunk.len as usize <= MAX_CHUNK_LEN;
    let place = match site {
        Listed::Drive(site) => {
            let permission = permission(&told.binding)?;
            permission.permits(offset..end).then(|| Place::Drive(site.clone(), permission))?
        }
        Listed::Bucket { id, .. } => {
            let is_whole = (offset, end) == (0, chunk.len);
            (told.binding == ADDRESSED && is_whole).then_some(Place::Bucket(*id))?
        }
    };
    is_inside.then_some(PartCopy { place, chunk, offset, is_bad: AtomicBool::new(false) })
}

fn permission(told: &Fixed<48>) -> Option<Permission> {
    if *told == COMMANDED {
        return Some(Permission::Commanded);
    }
    Binding::from_bytes(&told.0).ok().map(Permission::Bound)
}

impl Permission {
    /// Whether it can be for a range of the chunk.
    fn permits(&self, range: Range<u32>) -> bool {
        match self {
            Permission::Bound(Binding { terms, .. }) => terms.start <= range.start && range.end <= terms.end,
            Permission::Commanded => true,
        }
    }
}

#[cfg(test)]
mod tests;
