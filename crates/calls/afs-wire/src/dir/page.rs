//! Layout of a page: bitmap, free counts, hash table, entries. All reads are checked.

use super::hash::BUCKETS;
use super::{NAME_MAX, PAGE_LEN, PAGES_MAX, Page, Target};
use crate::ids::{Uniquifier, VnodeId};

pub(super) const SLOT_LEN: usize = 32;
pub(super) const SLOTS: u16 = 64;
/// Pages whose free slots page 0 counts.
pub(super) const COUNTED_PAGES: u16 = 128;
/// The count of a page that does not exist.
pub(super) const NO_PAGE: u8 = 64;

const TAG: u16 = 1234;
const BITMAP_AT: usize = 5;
const FREE_COUNTS_AT: usize = 32;
const TABLE_AT: usize = 160;
const NAME_AT: usize = 12;
const FIRST: u8 = 1;

/// Bits of the slots that the headers occupy.
pub(super) fn header_bits(page: u16) -> u64 {
    if page == 0 { 0x1fff } else { 1 }
}

/// Position of an entry: its "blob number".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) page: u16,
    pub(super) slot: u16,
}

impl Position {
    /// The position with a blob number, if an entry can be there in a directory of `count` pages.
    pub(super) fn from_number(number: u16, count: u16) -> Option<Self> {
        let position = Self { page: number / SLOTS, slot: number % SLOTS };
        let is_header = header_bits(position.page) >> position.slot & 1 == 1;
        (position.page < count.min(PAGES_MAX) && !is_header).then_some(position)
    }

    pub(super) fn number(self) -> u16 {
        self.page * SLOTS + self.slot
    }

    fn at(self) -> usize {
        usize::from(self.slot % SLOTS) * SLOT_LEN
    }
}

/// Slots that an entry with a name of this length takes: 1 to 9.
pub(super) fn slots_for(name_len: usize) -> u16 {
    1 + ((name_len.min(NAME_MAX) + 16) / SLOT_LEN) as u16
}

fn u16_at(page: &Page, at: usize) -> u16 {
    page.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_be_bytes)
}

fn u32_at(page: &Page, at: usize) -> u32 {
    page.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn put(page: &mut Page, at: usize, bytes: &[u8]) {
    if let Some(to) = page.get_mut(at..at + bytes.len()) {
        to.copy_from_slice(bytes);
    }
}

/// Formats a page of zeros as a page without entries.
pub(super) fn format(page: &mut Page, number: u16) {
    put(page, 2, &TAG.to_be_bytes());
    put(page, 4, &[if number == 0 { 51 } else { 63 }]);
    set_bitmap(page, header_bits(number));
}

pub(super) fn has_tag(page: &Page) -> bool {
    u16_at(page, 2) == TAG
}

/// Number of pages according to page 0; 0 in old directories.
pub(super) fn page_count(page0: &Page) -> u16 {
    u16_at(page0, 0)
}

pub(super) fn set_page_count(page0: &mut Page, count: u16) {
    put(page0, 0, &count.to_be_bytes());
}

/// Bit n is set when slot n is in use.
pub(super) fn bitmap(page: &Page) -> u64 {
    page.get(BITMAP_AT..BITMAP_AT + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

pub(super) fn set_bitmap(page: &mut Page, bits: u64) {
    put(page, BITMAP_AT, &bits.to_le_bytes());
}

/// Bits of `count` slots from `slot` on.
pub(super) fn slot_bits(slot: u16, count: u16) -> u64 {
    let ones = if count >= SLOTS { u64::MAX } else { (1 << count) - 1 };
    ones.checked_shl(slot.into()).unwrap_or(0)
}

/// The first of `count` free slots in a row.
pub(super) fn first_free_run(bits: u64, count: u16) -> Option<u16> {
    let run = (0..count).fold(!bits, |run, ahead| run & !bits >> ahead);
    (run != 0).then(|| run.trailing_zeros() as u16)
}

/// Free slots of one of the first 128 pages, as page 0 counts them.
pub(super) fn free_count(page0: &Page, number: u16) -> Option<u8> {
    (number < COUNTED_PAGES).then(|| page0.get(FREE_COUNTS_AT + usize::from(number)).copied()).flatten()
}

pub(super) fn set_free_count(page0: &mut Page, number: u16, free: u8) {
    if number < COUNTED_PAGES {
        put(page0, FREE_COUNTS_AT + usize::from(number), &[free]);
    }
}

/// Blob number of a chain's first entry; 0 is none.
pub(super) fn chain_head(page0: &Page, bucket: u8) -> u16 {
    u16_at(page0, TABLE_AT + 2 * (usize::from(bucket) % BUCKETS))
}

pub(super) fn set_chain_head(page0: &mut Page, bucket: u8, number: u16) {
    put(page0, TABLE_AT + 2 * (usize::from(bucket) % BUCKETS), &number.to_be_bytes());
}

/// An entry in its page.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawEntry<'a> {
    pub(super) live: bool,
    pub(super) next: u16,
    pub(super) target: Target,
    pub(super) name: &'a [u8],
}

impl RawEntry<'_> {
    pub(super) fn slots(&self) -> u16 {
        slots_for(self.name.len())
    }
}

/// Reads the entry at a position. None when its name is too long or does not end within the page.
pub(super) fn entry(page: &Page, position: Position) -> Option<RawEntry<'_>> {
    let at = position.at();
    let bytes = page.get(at + NAME_AT..)?;
    let window = bytes.get(..(NAME_MAX + 1).min(bytes.len()))?;
    let len = window.iter().position(|&c| c == 0)?;
    Some(RawEntry {
        live: page.get(at) == Some(&FIRST),
        next: u16_at(page, at + 2),
        target: target(page, position),
        name: window.get(..len)?,
    })
}

/// Fields of an entry needed to follow a hash chain, without a search for the end of its name.
pub(super) struct Link {
    pub(super) live: bool,
    pub(super) next: u16,
    pub(super) matches: bool,
}

/// Compares the entry at a position with a name.
pub(super) fn link(page: &Page, position: Position, name: &[u8]) -> Link {
    let at = position.at();
    let stored = page.get(at + NAME_AT..).unwrap_or_default();
    Link {
        live: page.get(at) == Some(&FIRST),
        next: u16_at(page, at + 2),
        matches: stored.starts_with(name) && stored.get(name.len()) == Some(&0),
    }
}

pub(super) fn target(page: &Page, position: Position) -> Target {
    (VnodeId(u32_at(page, position.at() + 4)), Uniquifier(u32_at(page, position.at() + 8)))
}

/// Whether a live entry begins at this slot.
pub(super) fn begins_entry(page: &Page, slot: u16) -> bool {
    bitmap(page) >> (slot % SLOTS) & 1 == 1 && page.get(usize::from(slot) * SLOT_LEN) == Some(&FIRST)
}

/// Writes an entry at a position, zeroing the rest of its slots.
pub(super) fn put_entry(page: &mut Page, position: Position, next: u16, target: Target, name: &[u8]) {
    clear_slots(page, position, slots_for(name.len()));
    let at = position.at();
    put(page, at, &[FIRST]);
    put_next(page, position, next);
    put_target(page, position, target);
    put(page, at + NAME_AT, name);
}

pub(super) fn put_next(page: &mut Page, position: Position, next: u16) {
    put(page, position.at() + 2, &next.to_be_bytes());
}

pub(super) fn put_target(page: &mut Page, position: Position, (vnode, unique): Target) {
    put(page, position.at() + 4, &vnode.0.to_be_bytes());
    put(page, position.at() + 8, &unique.0.to_be_bytes());
}

pub(super) fn clear_slots(page: &mut Page, position: Position, count: u16) {
    let end = (position.at() + usize::from(count) * SLOT_LEN).min(PAGE_LEN);
    if let Some(bytes) = page.get_mut(position.at()..end) {
        bytes.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_by_name_length() {
        for (len, slots) in [(1, 1), (15, 1), (16, 2), (47, 2), (48, 3), (79, 3), (80, 4), (255, 9), (256, 9)]
        {
            assert_eq!(slots_for(len), slots, "{len}");
        }
    }

    #[test]
    fn runs_of_free_slots() {
        assert_eq!(first_free_run(0x1fff, 1), Some(13));
        assert_eq!(first_free_run(!0b0110_0100, 2), Some(5));
        assert_eq!(first_free_run(!0b0110_0100, 3), None);
        assert_eq!(first_free_run(u64::MAX, 1), None);
        // A run cannot continue in the next page.
        assert_eq!(first_free_run(u64::MAX >> 1, 1), Some(63));
        assert_eq!(first_free_run(u64::MAX >> 1, 2), None);
    }

    #[test]
    fn headers_are_no_places_for_entries() {
        assert_eq!(Position::from_number(12, 1), None);
        assert_eq!(Position::from_number(13, 1), Some(Position { page: 0, slot: 13 }));
        assert_eq!(Position::from_number(64, 2), None);
        assert_eq!(Position::from_number(65, 1), None);
        assert_eq!(Position::from_number(u16::MAX, u16::MAX), None);
    }
}
