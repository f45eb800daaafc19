//! Layout of a file as the file server told it, checked: nothing of it can be out of bounds afterwards.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_datapath::capability::{DriveId, Generation};
use afs_drive::{ChunkRef, MAX_CHUNK_LEN};
use afs_rpc::Instant;
use afs_wire::fs::{FileLayout, LayoutDrive, ListedPart};

use super::super::capabilities::{Given, Use};
use super::super::grants::given;
use super::super::offer::Offer;
use super::lists::{self, AtDrive, Element};
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
enum Usable {
    Drive(Arc<Site>),
    Bucket { id: DriveId, ends: Instant },
}

/// Why the drive sends the chunk.
pub(super) enum Permission {
    /// It is in a list that is bound to the group of the capability.
    Listed(Element),
    /// The file server commands each transfer, when it is asked.
    Commanded,
}

/// What the file server said of a copy.
enum Told {
    Permission(Permission),
    Addressed,
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
        reply: &FileLayout,
        asked: &Asked,
        config: &DataPathConfig,
        mut site: impl FnMut(Offer, Given) -> Option<Arc<Site>>,
    ) -> Option<Layout> {
        let lists = lists::lists(reply)?;
        let sites = reply.drives.iter().map(|drive| usable(drive, asked, config, &mut site));
        let sites: Vec<_> = sites.collect();
        let mut elements = Elements { lists: &lists, next: vec![0; lists.len()] };
        let parts = reply.parts.parts().iter().map(|told| elements.part(told, &sites));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        Self::checked(asked.start..reply.end, parts, sites)
    }

    fn checked(range: Range<u64>, parts: Vec<Part>, sites: Vec<Option<Usable>>) -> Option<Layout> {
        if range.is_empty() || range.end > i64::MAX as u64 {
            return None;
        }
        if !parts.is_sorted_by(|before, part| before.range.end <= part.range.start) {
            return None;
        }
        let ends = sites.iter().flatten().filter_map(Usable::ends).min();
        let with_oldest = |site: Arc<Site>| {
            let oldest = oldest(&parts, &site);
            (site, oldest)
        };
        let has_any = sites.iter().any(Option::is_some);
        let sites: Vec<_> = sites.into_iter().flatten().filter_map(Usable::site).map(with_oldest).collect();
        has_any.then_some(Layout { range, parts, sites, ends })
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

impl Usable {
    /// When it is asked about again; a drive's capability is renewed instead.
    fn ends(&self) -> Option<Instant> {
        match self {
            Usable::Drive(_) => None,
            Usable::Bucket { ends, .. } => Some(*ends),
        }
    }

    fn site(self) -> Option<Arc<Site>> {
        match self {
            Usable::Drive(site) => Some(site),
            Usable::Bucket { .. } => None,
        }
    }
}

/// A drive or a bucket of a reply; `None` if it cannot be used from here.
fn usable(
    told: &LayoutDrive,
    asked: &Asked,
    config: &DataPathConfig,
    site: &mut impl FnMut(Offer, Given) -> Option<Arc<Site>>,
) -> Option<Usable> {
    if is_bucket(told) {
        return bucket(told, asked);
    }
    let (offer, given) = used(told, asked, config)?;
    site(offer, given).map(Usable::Drive)
}

fn is_bucket(told: &LayoutDrive) -> bool {
    told.address.is_unspecified() && told.port == 0 && told.capability.arguments.is_empty()
}

fn bucket(told: &LayoutDrive, asked: &Asked) -> Option<Usable> {
    let life = Duration::from_secs(told.capability.seconds.into()).min(LAYOUT_LIFE_MAX);
    let id = DriveId(u128::from_be_bytes(told.drive.0));
    (asked.buckets && !life.is_zero()).then_some(Usable::Bucket { id, ends: asked.at + life })
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
        Place::Drive(there, permission) if Arc::ptr_eq(there, site) => permission.generation(),
        _ => None,
    });
    bound.min().unwrap_or(Generation(u64::MAX))
}

fn whole_part(start: u64, length: u32, copies: Vec<PartCopy>) -> Option<Part> {
    let end = start.checked_add(length.into())?;
    (length > 0 && end <= i64::MAX as u64).then_some(Part { range: start..end, copies })
}

/// A copy of a part that is a range of a chunk.
fn part_copy(chunk: ChunkRef, range: Range<u32>, told: Told, site: &Usable) -> Option<PartCopy> {
    let is_inside = range.end <= chunk.len && chunk.len as usize <= MAX_CHUNK_LEN;
    let is_whole = range == (0..chunk.len);
    let offset = range.start;
    let place = match (site, told) {
        (Usable::Drive(site), Told::Permission(permission)) => Place::Drive(site.clone(), permission),
        (Usable::Bucket { id, .. }, Told::Addressed) if is_whole => Place::Bucket(*id),
        _ => return None,
    };
    is_inside.then_some(PartCopy { place, chunk, offset, is_bad: AtomicBool::new(false) })
}

/// The lists of a reply, and the place in each of the next part's copy.
struct Elements<'a> {
    lists: &'a [AtDrive],
    next: Vec<u32>,
}

impl Elements<'_> {
    fn part(&mut self, told: &ListedPart, sites: &[Option<Usable>]) -> Option<Part> {
        let offset = told.chunk.offset;
        let range = offset..offset.checked_add(told.length)?;
        let mut copies = Vec::new();
        for copy in &told.copies {
            let of_copy = self.told(copy.drive as usize, &range)?;
            if let Some(site) = sites.get(copy.drive as usize)? {
                copies.push(part_copy(lists::chunk(told, copy.id), range.clone(), of_copy, site)?);
            }
        }
        whole_part(told.start, told.length, copies)
    }

    /// What the next copy at a drive is read by.
    fn told(&mut self, drive: usize, range: &Range<u32>) -> Option<Told> {
        let next = self.next.get_mut(drive)?;
        let place = *next;
        *next += 1;
        Some(match self.lists.get(drive)? {
            AtDrive::Listed(list) => {
                Told::Permission(Permission::Listed(Element::new(list, place, (range.start, range.end))))
            }
            AtDrive::Commanded => Told::Permission(Permission::Commanded),
            AtDrive::Addressed => Told::Addressed,
        })
    }
}

impl Permission {
    /// Of the binding, if there is one.
    fn generation(&self) -> Option<Generation> {
        match self {
            Permission::Listed(element) => Some(element.generation()),
            Permission::Commanded => None,
        }
    }
}

#[cfg(test)]
mod tests;
