//! Iteration over the entries of a directory, by byte position.

use super::page::{self, Position, SLOT_LEN, SLOTS};
use super::{DirError, PAGES_MAX, Page, Pages, find};
use crate::ids::{Uniquifier, VnodeId};

/// An entry with its position and that of its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Byte position of the entry. Stable: entries never move.
    pub offset: u32,
    /// Byte position after the entry: where to continue.
    pub next: u32,
    /// The name, without its NUL.
    pub name: &'a [u8],
    /// The vnode of the target.
    pub vnode: VnodeId,
    /// The uniquifier of the target.
    pub unique: Uniquifier,
}

/// The first entry that begins at `offset` or later, `.` and `..` included; `None` past the last one.
///
/// Start with 0 and continue with [`Entry::next`]. Any other number is harmless too: the search then starts at the
/// beginning of its page, so that the inside of an entry is never taken for another entry.
///
/// # Errors
/// [`DirError::Damaged`], [`DirError::Pages`].
pub fn entry_at_or_after<P: Pages>(
    pages: &mut P,
    offset: u32,
) -> Result<Option<Entry<'_>>, DirError<P::Error>> {
    find::first_page(pages)?;
    let wanted = offset.div_ceil(SLOT_LEN as u32);
    let (mut from, first) = (wanted % u32::from(SLOTS), wanted / u32::from(SLOTS));
    for number in first..u32::from(pages.count().min(PAGES_MAX)) {
        let number = number as u16;
        let page = pages.page(number).map_err(DirError::Pages)?;
        if let Some(slot) = first_in_page(page, number, from as u16).map_err(DirError::Damaged)? {
            return entry(pages, Position { page: number, slot }).map(Some);
        }
        from = 0;
    }
    Ok(None)
}

fn entry<P: Pages>(pages: &mut P, position: Position) -> Result<Entry<'_>, DirError<P::Error>> {
    let page = pages.page(position.page).map_err(DirError::Pages)?;
    let raw = page::entry(page, position).ok_or(DirError::Damaged(ENDLESS))?;
    let number = u32::from(position.number());
    Ok(Entry {
        offset: number * SLOT_LEN as u32,
        next: (number + u32::from(raw.slots())) * SLOT_LEN as u32,
        name: raw.name,
        vnode: raw.target.0,
        unique: raw.target.1,
    })
}

const ENDLESS: &str = "a name does not end";

/// The slot of the first entry at `from` or later.
fn first_in_page(page: &Page, number: u16, from: u16) -> Result<Option<u16>, &'static str> {
    if !page::has_tag(page) {
        return Err("a page lacks its tag");
    }
    let mut slot = page::header_bits(number).count_ones() as u16;
    while slot < SLOTS {
        if !page::begins_entry(page, slot) {
            slot += 1;
            continue;
        }
        if slot >= from {
            return Ok(Some(slot));
        }
        slot += page::entry(page, Position { page: number, slot }).ok_or(ENDLESS)?.slots();
    }
    Ok(None)
}

/// Whether the only entries are `.` and `..`. Reads only pages that have entries.
///
/// # Errors
/// [`DirError::Damaged`], [`DirError::Pages`].
pub fn is_empty<P: Pages>(pages: &mut P) -> Result<bool, DirError<P::Error>> {
    let page0 = find::first_page(pages)?;
    let counts: [Option<u8>; page::COUNTED_PAGES as usize] =
        std::array::from_fn(|number| page::free_count(page0, number as u16));
    for number in 0..pages.count().min(PAGES_MAX) {
        if number > 0 && counts.get(usize::from(number)).copied().flatten() == Some(63) {
            continue;
        }
        if page_has_names(pages, number)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn page_has_names<P: Pages>(pages: &mut P, number: u16) -> Result<bool, DirError<P::Error>> {
    let page = pages.page(number).map_err(DirError::Pages)?;
    let mut from = 0;
    while let Some(slot) = first_in_page(page, number, from).map_err(DirError::Damaged)? {
        let raw = page::entry(page, Position { page: number, slot }).ok_or(DirError::Damaged(ENDLESS))?;
        if !matches!(raw.name, b"." | b"..") {
            return Ok(true);
        }
        from = slot + raw.slots();
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{Blob, insert, remove};

    #[test]
    fn offsets_are_stable_and_any_offset_is_harmless() {
        let mut blob = Blob::create((VnodeId(1), Uniquifier(1)), (VnodeId(1), Uniquifier(1)));
        let long = [b'l'; 200];
        for name in [&b"first"[..], &long, b"last"] {
            insert(&mut blob, name, (VnodeId(2), Uniquifier(2))).unwrap();
        }
        let at = |blob: &Blob, offset| {
            let mut pages = blob;
            entry_at_or_after(&mut pages, offset).unwrap().map(|entry| (entry.offset, entry.name.to_vec()))
        };
        let last = (32 * (16 + 7), b"last".to_vec());
        assert_eq!(at(&blob, 0), Some((416, b".".to_vec())));
        assert_eq!(at(&blob, 32 * 15), Some((480, b"first".to_vec())));
        for inside in (32 * 16 + 1)..(32 * 23) {
            assert_eq!(at(&blob, inside), Some(last.clone()), "{inside}");
        }
        remove(&mut blob, b"first").unwrap();
        assert_eq!(at(&blob, 32 * 23), Some(last));
        assert_eq!(at(&blob, 32 * 24), None);
        assert_eq!(at(&blob, u32::MAX), None);
    }
}
