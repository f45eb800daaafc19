//! Pages of the index, read past redb: each is compared with the checksum that its parent has of it, and what is damaged is passed over.
//!
//! The layout is version 3 of redb's file format (`docs/design.md` of redb 4.4.0). Nothing here writes.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use crate::medium::Blob;
use crate::page::{Branch, Node, Shape, rows_of_damaged};

/// A page as its parent names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) number: u64,
    pub(crate) sum: u128,
}

/// A file of pages.
pub(crate) struct Pages {
    blob: Arc<dyn Blob>,
    len: u64,
    geometry: Geometry,
}

/// Where the pages of a number are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    /// Pages before the data of a region.
    pub(crate) header_pages: u32,
    /// Pages of data in a whole region.
    pub(crate) data_pages: u32,
}

/// The keys that a page may have: behind `after`, up to and with `through`; `None` without a bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) after: Option<Bytes>,
    pub(crate) through: Option<Bytes>,
}

/// Receives what a walk finds.
pub(crate) trait PageVisitor {
    type Error;

    /// The rows of a leaf, in order.
    fn rows(&mut self, rows: Vec<(Bytes, Bytes)>) -> Result<(), Self::Error>;

    /// What a damaged leaf may have held, for rows that prove themselves.
    fn doubtful(&mut self, _: &mut dyn Iterator<Item = (Bytes, Bytes)>) {}

    /// A page that is damaged, with the keys that may have been in it.
    fn lost(&mut self, page: LostPage);
}

/// A damaged page.
#[derive(Clone, Debug)]
pub(crate) struct LostPage {
    /// Its offset in the file, in bytes. `None` where it would be outside.
    pub(crate) offset: Option<u64>,
    pub(crate) bounds: Bounds,
    /// Pages that it names, if it may be a branch, and how many of them are unharmed.
    pub(crate) named: usize,
    pub(crate) unharmed: usize,
}

impl LostPage {
    /// In words, of a tree of rows.
    pub(crate) fn of_rows(&self) -> String {
        format!("{} of its rows", self.what())
    }

    /// In words.
    pub(crate) fn what(&self) -> String {
        let at = self.offset.map_or_else(|| "outside".to_owned(), |offset| format!("at {offset}"));
        match self.named {
            0 => format!("is damaged in the page {at}"),
            named => {
                format!("is damaged in the page {at}, with {} of {named} below it unharmed,", self.unharmed)
            }
        }
    }
}

/// A walk over one tree.
struct Walk<'a, V> {
    pages: &'a Pages,
    shape: Shape,
    visit: &'a mut V,
    /// Bytes that may still be read.
    left: u64,
}

impl Pages {
    pub(crate) fn new(blob: Arc<dyn Blob>, geometry: Geometry) -> io::Result<Self> {
        let len = blob.len()?;
        Ok(Self { blob, len, geometry })
    }

    /// Reads a tree in the order of its keys, and passes over what is damaged. Reads at most twice the bytes of the file.
    pub(crate) fn walk<V: PageVisitor>(
        &self,
        root: Link,
        shape: Shape,
        visit: &mut V,
    ) -> Result<(), V::Error> {
        let left = self.len.saturating_mul(2);
        Walk { pages: self, shape, visit, left }.page(root, Bounds::default(), DEPTH_MAX)
    }

    /// Whether a page is there as its parent names it.
    pub(crate) fn is_whole(&self, link: Link, shape: Shape) -> bool {
        self.read(link).is_some_and(|page| verified(&page, link, shape).is_some())
    }

    /// Where a page is; `None` if that is not in the file.
    fn place(&self, number: u64) -> Option<(u64, u64)> {
        let (order, region) = (number >> 59, number >> 20 & 0xf_ffff);
        let index = number & (0xf_ffff_u64.checked_shr(order as u32)?);
        let size = PAGE_LEN.checked_shl(order as u32)?;
        let region_len =
            (u64::from(self.geometry.header_pages) + u64::from(self.geometry.data_pages)) * PAGE_LEN;
        let within = u64::from(self.geometry.header_pages) * PAGE_LEN + index.checked_mul(size)?;
        let start = PAGE_LEN.checked_add(region.checked_mul(region_len)?)?.checked_add(within)?;
        (size <= PAGE_MAX && start.checked_add(size)? <= self.len).then_some((start, size))
    }

    /// The bytes of a page; `None` if they cannot be read.
    fn read(&self, link: Link) -> Option<Bytes> {
        let (start, size) = self.place(link.number)?;
        let mut page = vec![0; size as usize];
        self.blob.read_at(start, &mut page).ok()?;
        Some(page.into())
    }
}

impl<V: PageVisitor> Walk<'_, V> {
    fn page(&mut self, link: Link, bounds: Bounds, depth: usize) -> Result<(), V::Error> {
        let page = if depth > 0 { self.read(link) } else { None };
        match page.as_ref().and_then(|page| verified(page, link, self.shape)) {
            Some(Node::Leaf(rows)) => self.visit.rows(rows),
            Some(Node::Branch(branch)) => self.children(&branch, &bounds, depth),
            None => self.damaged(link, page.as_ref(), bounds, depth),
        }
    }

    fn read(&mut self, link: Link) -> Option<Bytes> {
        let page = self.pages.read(link)?;
        self.left = self.left.checked_sub(page.len() as u64)?;
        Some(page)
    }

    fn children(&mut self, branch: &Branch, bounds: &Bounds, depth: usize) -> Result<(), V::Error> {
        let mut after = bounds.after.clone();
        for (at, link) in branch.children.iter().enumerate() {
            let through = branch.keys.get(at).cloned().or_else(|| bounds.through.clone());
            self.page(*link, Bounds { after, through: through.clone() }, depth - 1)?;
            after = through;
        }
        Ok(())
    }

    /// Reports a damaged page, and goes on with those of its children that are as it says they are: these were not harmed, since a
    /// checksum of 128 bits is not right by chance.
    fn damaged(
        &mut self,
        link: Link,
        page: Option<&Bytes>,
        bounds: Bounds,
        depth: usize,
    ) -> Result<(), V::Error> {
        if let Some(page) = page {
            self.visit.doubtful(&mut rows_of_damaged(page, self.shape));
        }
        let (named, unharmed) = page.map(|page| self.unharmed(page)).unwrap_or_default();
        for child in &unharmed {
            self.page(*child, bounds.clone(), depth - 1)?;
        }
        let unharmed = unharmed.len();
        let offset = self.pages.place(link.number).map(|(start, _)| start);
        self.visit.lost(LostPage { offset, bounds, named, unharmed });
        Ok(())
    }

    /// How many pages a damaged branch names, and those that are as it says.
    fn unharmed(&mut self, page: &Bytes) -> (usize, Vec<Link>) {
        for links in Branch::links_of_damaged(page) {
            let mut whole =
                |link: &Link| self.read(*link).and_then(|page| verified(&page, *link, self.shape));
            let unharmed: Vec<_> = links.iter().copied().filter(|link| whole(link).is_some()).collect();
            if !unharmed.is_empty() {
                return (links.len(), unharmed);
            }
        }
        (0, Vec::new())
    }
}

/// The contents of a page, if it has the checksum that its parent says.
fn verified(page: &Bytes, link: Link, shape: Shape) -> Option<Node> {
    let (node, end) = Node::decode(page, shape)?;
    (xxh3_128(page.get(..end)?) == link.sum).then_some(node)
}

/// Length of the smallest pages; each other is 2, 4, 8 ... times as long.
pub(crate) const PAGE_LEN: u64 = 4096;
/// Most bytes of a page: more than one change of a store can need.
const PAGE_MAX: u64 = 128 << 20;
/// More levels than a tree of pages can have.
const DEPTH_MAX: usize = 40;
