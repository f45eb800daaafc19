//! Layout of a file as the file server told it, checked: nothing of it can be out of bounds afterwards.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use afs_datapath::capability::{Binding, Group};
use afs_drive::{ChunkRef, MAX_CHUNK_LEN};
use afs_rpc::Instant;
use afs_wire::fs::{COMMANDED, GetLayoutReply, LayoutCopy, LayoutDrive, LayoutPart};
use afs_wire::xdr::{Decode, Fixed};

use super::super::capabilities::{Given, Use};
use super::super::grants::given;
use super::super::offer::Offer;
use crate::config::DataPathConfig;

/// Most bytes that are read at once.
const STEP: u64 = 1 << 20;

/// Where bytes of one version of a file are.
pub(super) struct Layout {
    /// The bytes of which it tells.
    pub range: Range<u64>,
    parts: Vec<Part>,
    /// When the first of its capabilities ends.
    pub ends: Instant,
}

/// Bytes that are together.
pub(super) struct Part {
    range: Range<u64>,
    /// None for bytes that only the file server gives.
    pub copies: Vec<PartCopy>,
}

/// A drive, and a capability for it.
pub(super) struct Site {
    pub offer: Offer,
    pub given: Arc<Given>,
}

/// A chunk in which a part is.
pub(super) struct PartCopy {
    pub site: Arc<Site>,
    pub chunk: ChunkRef,
    pub permission: Permission,
    offset: u32,
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
}

impl Layout {
    /// What the file server has replied. `None` for what contradicts itself. Copies at drives that cannot be used from here are left
    /// out; `number` numbers capabilities.
    pub fn new(
        reply: &GetLayoutReply,
        asked: &Asked,
        config: &DataPathConfig,
        mut number: impl FnMut() -> u64,
    ) -> Option<Layout> {
        let end = reply.end;
        if end <= asked.start || end > i64::MAX as u64 {
            return None;
        }
        let sites = reply.drives.iter().map(|drive| site(drive, asked, config, number()));
        let sites: Vec<_> = sites.collect();
        let mut parts: Vec<Part> = Vec::with_capacity(reply.parts.len());
        for told in reply.parts.iter() {
            let part = part(told, &sites)?;
            if parts.last().is_some_and(|before| part.range.start < before.range.end) {
                return None;
            }
            parts.push(part);
        }
        let ends = sites.iter().flatten().map(|site| site.given.ends).min()?;
        Some(Layout { range: asked.start..end, parts, ends })
    }

    /// One without bytes at a drive.
    #[cfg(test)]
    pub fn of_holes(range: Range<u64>, parts: usize, ends: Instant) -> Layout {
        let part = |n| Part { range: range.start + n..range.start + n + 1, copies: Vec::new() };
        Layout { parts: (0..parts as u64).map(part).collect(), range: range.clone(), ends }
    }

    /// How many parts it has: its size.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Whether bytes of a range are at a drive.
    pub fn has_copies(&self, range: &Range<u64>) -> bool {
        let inside =
            self.parts.iter().filter(|part| part.range.start < range.end && range.start < part.range.end);
        inside.into_iter().any(|part| !part.copies.is_empty())
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
        match self.copies.is_empty() {
            true => Segment::Server(length),
            false => Segment::Drives { part: self, at: at - self.range.start, length },
        }
    }
}

impl PartCopy {
    /// The range of the chunk that has so many bytes of the part from a position in it.
    pub fn range(&self, at: u64, length: u64) -> Option<Range<u32>> {
        let start = self.offset.checked_add(u32::try_from(at).ok()?)?;
        Some(start..start.checked_add(u32::try_from(length).ok()?)?)
    }
}

/// A drive of a reply; `None` if it cannot be used from here.
fn site(told: &LayoutDrive, asked: &Asked, config: &DataPathConfig, number: u64) -> Option<Arc<Site>> {
    let offer = Offer::of_layout(told, asked.called, config)?;
    let given = given(&told.capability, Use::Read, asked.at)?;
    let is_for_it =
        given.capability.drive == offer.drive && matches!(given.capability.group, Group::Tagged(_));
    is_for_it.then(|| Arc::new(Site { offer, given: Arc::new(Given { number, ..given }) }))
}

fn part(told: &LayoutPart, sites: &[Option<Arc<Site>>]) -> Option<Part> {
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

fn part_copy(told: &LayoutCopy, length: u32, site: &Arc<Site>) -> Option<PartCopy> {
    let chunk = ChunkRef::from_bytes(&told.chunk.0)?;
    let permission = permission(&told.binding)?;
    let (offset, end) = (told.offset, told.offset.checked_add(length)?);
    let is_inside = end <= chunk.len && chunk.len as usize <= MAX_CHUNK_LEN;
    (is_inside && permission.permits(offset..end)).then(|| PartCopy {
        site: site.clone(),
        chunk,
        permission,
        offset,
    })
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
