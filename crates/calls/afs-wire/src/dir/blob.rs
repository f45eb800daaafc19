//! A directory in memory, as clients cache it.

use super::{DirError, Entry, PAGE_LEN, PAGES_MAX, Page, Pages, PagesMut, Target, entry_at_or_after};
use std::convert::Infallible;

/// All pages of a directory in one piece: at most 2 MiB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob(Vec<u8>);

/// A length that no directory has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a directory cannot be {0} bytes long: it is 1 to 1023 pages of 2048 bytes")]
pub struct BadLength(pub usize);

impl Blob {
    /// Takes a directory's data.
    ///
    /// # Errors
    /// [`BadLength`] unless it is 1 to 1023 whole pages.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, BadLength> {
        let whole = bytes.len().is_multiple_of(PAGE_LEN);
        let in_bounds = (1..=usize::from(PAGES_MAX)).contains(&(bytes.len() / PAGE_LEN));
        if whole && in_bounds { Ok(Self(bytes)) } else { Err(BadLength(bytes.len())) }
    }

    /// A directory with the entries `.` and `..` only.
    pub fn create(this: Target, parent: Target) -> Self {
        let mut blob = Self(Vec::new());
        // Cannot fail: neither memory nor an empty directory refuses the two names.
        let _ = super::create(&mut blob, this, parent);
        blob
    }

    /// The data as on the wire.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The data as on the wire.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Looks a name up.
    ///
    /// # Errors
    /// [`DirError::Damaged`].
    pub fn lookup(&self, name: &[u8]) -> Result<Option<Target>, DirError<Infallible>> {
        super::lookup(&mut &*self, name)
    }

    /// All entries from `offset` on, `.` and `..` included. Ends at the first damage.
    pub fn entries(&self, offset: u32) -> impl Iterator<Item = Entry<'_>> {
        let mut next = offset;
        std::iter::from_fn(move || {
            let entry = self.entry_at_or_after(next).ok().flatten()?;
            next = entry.next;
            Some(entry)
        })
    }

    /// The first entry at `offset` or later; see [`entry_at_or_after`].
    ///
    /// # Errors
    /// [`DirError::Damaged`].
    pub fn entry_at_or_after(&self, offset: u32) -> Result<Option<Entry<'_>>, DirError<Infallible>> {
        // The entry must borrow from the blob, not from the temporary reference that implements `Pages`.
        let found = entry_at_or_after(&mut &*self, offset)?.map(|entry| {
            let name_at = entry.offset as usize + 12;
            (entry.offset, entry.next, entry.vnode, entry.unique, name_at..name_at + entry.name.len())
        });
        Ok(found.and_then(|(offset, next, vnode, unique, name)| {
            Some(Entry { offset, next, name: self.0.get(name)?, vnode, unique })
        }))
    }
}

/// Pages beyond the end read as an empty page, which has no tag and so counts as damage.
static NOTHING: Page = [0; PAGE_LEN];

impl Pages for &Blob {
    type Error = Infallible;

    fn count(&self) -> u16 {
        (self.0.len() / PAGE_LEN) as u16
    }

    fn page(&mut self, number: u16) -> Result<&Page, Infallible> {
        Ok(self.0.as_chunks().0.get(usize::from(number)).unwrap_or(&NOTHING))
    }
}

impl Pages for Blob {
    type Error = Infallible;

    fn count(&self) -> u16 {
        (&self).count()
    }

    fn page(&mut self, number: u16) -> Result<&Page, Infallible> {
        Ok(self.0.as_chunks().0.get(usize::from(number)).unwrap_or(&NOTHING))
    }
}

impl PagesMut for Blob {
    fn page_mut(&mut self, number: u16) -> Result<&mut Page, Infallible> {
        let needed = (usize::from(number) + 1) * PAGE_LEN;
        if self.0.len() < needed {
            self.0.resize(needed, 0);
        }
        Ok(&mut self.0.as_chunks_mut().0[usize::from(number)])
    }

    fn append(&mut self) -> Result<&mut Page, Infallible> {
        let number = Pages::count(self);
        self.page_mut(number)
    }
}
