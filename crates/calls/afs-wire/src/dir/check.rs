//! Consistency check of a directory. Source: `docs/protocol/directory.md` "3. Algorithms", consistency rules.

use super::hash::{self, BUCKETS};
use super::page::{self, Position};
use super::{DirError, PAGES_MAX, Pages, Target, check_name, find};
use std::collections::BTreeSet;

/// Contents of a consistent directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Target of `.`: the directory itself.
    pub this: Target,
    /// Target of `..`.
    pub parent: Target,
    /// Names other than `.` and `..`.
    pub entries: u32,
    /// Pages.
    pub pages: u16,
}

/// Reads the whole directory, verifies every rule of the format, and returns a summary.
///
/// A directory that passes can be edited without [`DirError::Damaged`].
///
/// # Errors
/// [`DirError::Damaged`] with the first rule found broken; [`DirError::Pages`].
pub fn check<P: Pages>(pages: &mut P) -> Result<Summary, DirError<P::Error>> {
    let count = pages.count();
    if count > PAGES_MAX {
        return Err(DirError::Damaged("it has too many pages"));
    }
    check_first_page(pages)?;
    let mut used = Vec::with_capacity(count.into());
    for number in 0..count {
        used.push(page::header_bits(number));
        check_page(pages, number)?;
    }
    let mut entries = 0;
    for bucket in 0..BUCKETS as u8 {
        entries += check_chain(pages, bucket, &mut used)?;
    }
    for (number, used) in (0..count).zip(used) {
        if page::bitmap(pages.page(number).map_err(DirError::Pages)?) != used {
            return Err(DirError::Damaged("slots are in use that no entry takes"));
        }
    }
    let this = dot(pages, b".", 13)?;
    let parent = dot(pages, b"..", 14)?;
    Ok(Summary { this, parent, entries: entries - 2, pages: count })
}

fn check_first_page<P: Pages>(pages: &mut P) -> Result<(), DirError<P::Error>> {
    let count = pages.count();
    let page0 = find::first_page(pages)?;
    let exists = |number: &u16| page::free_count(page0, *number) != Some(page::NO_PAGE);
    let counted = (0..page::COUNTED_PAGES).filter(exists).count();
    if counted != usize::from(count.min(page::COUNTED_PAGES)) || (0..count).any(|number| !exists(&number)) {
        return Err(DirError::Damaged("its pages and the counts of their slots do not agree"));
    }
    // Old directories do not record their number of pages.
    match page::page_count(page0) {
        said if said == count || said == 0 && count <= page::COUNTED_PAGES => Ok(()),
        _ => Err(DirError::Damaged("it does not have as many pages as it says")),
    }
}

fn check_page<P: Pages>(pages: &mut P, number: u16) -> Result<(), DirError<P::Error>> {
    let counted = page::free_count(find::first_page(pages)?, number);
    let page = pages.page(number).map_err(DirError::Pages)?;
    if !page::has_tag(page) {
        return Err(DirError::Damaged("a page lacks its tag"));
    }
    if counted.is_some_and(|free| u32::from(free) != page::bitmap(page).count_zeros()) {
        return Err(DirError::Damaged("the free slots of a page are not counted right"));
    }
    Ok(())
}

/// Follows one chain, marks the slots it takes and counts its entries. A slot is marked once, so this ends.
fn check_chain<P: Pages>(pages: &mut P, bucket: u8, used: &mut [u64]) -> Result<u32, DirError<P::Error>> {
    let mut names = BTreeSet::new();
    let mut number = page::chain_head(find::first_page(pages)?, bucket);
    while number != 0 {
        let position = Position::from_number(number, pages.count());
        let position = position.ok_or(DirError::Damaged("a hash chain leaves the pages"))?;
        let page = pages.page(position.page).map_err(DirError::Pages)?;
        let entry = page::entry(page, position).ok_or(DirError::Damaged("a name does not end"))?;
        check_name(entry.name).map_err(|_: DirError<P::Error>| DirError::Damaged("a name is not valid"))?;
        if !entry.live {
            return Err(DirError::Damaged("a hash chain leads to a free slot"));
        }
        if hash::bucket(entry.name) != bucket {
            return Err(DirError::Damaged("a name is in the wrong hash chain"));
        }
        if position.slot + entry.slots() > page::SLOTS {
            return Err(DirError::Damaged("an entry crosses the end of its page"));
        }
        let bits = page::slot_bits(position.slot, entry.slots());
        match used.get_mut(usize::from(position.page)) {
            Some(used) if *used & bits == 0 => *used |= bits,
            _ => return Err(DirError::Damaged("two entries take the same slot")),
        }
        number = entry.next;
        if !names.insert(entry.name.to_vec()) {
            return Err(DirError::Damaged("a name occurs twice"));
        }
    }
    Ok(names.len() as u32)
}

fn dot<P: Pages>(pages: &mut P, name: &[u8], slot: u16) -> Result<Target, DirError<P::Error>> {
    match find::find(pages, name)? {
        Some(found) if found.position == (Position { page: 0, slot }) => Ok(found.target),
        Some(_) => Err(DirError::Damaged("\".\" or \"..\" is not in its place")),
        None => Err(DirError::Damaged("\".\" or \"..\" is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{Blob, insert};
    use crate::ids::{Uniquifier, VnodeId};

    fn sample() -> Blob {
        let mut blob = Blob::create((VnodeId(3), Uniquifier(17)), (VnodeId(1), Uniquifier(1)));
        for number in 0..100u32 {
            let name = format!("name-{number}");
            insert(&mut blob, name.as_bytes(), (VnodeId(number * 2 + 2), Uniquifier(number))).unwrap();
        }
        blob
    }

    #[test]
    fn a_sound_directory_passes() {
        let summary = check(&mut sample()).unwrap();
        assert_eq!((summary.entries, summary.pages), (100, 2));
        assert_eq!(summary.this, (VnodeId(3), Uniquifier(17)));
    }

    #[test]
    fn a_changed_byte_of_structure_is_noticed() {
        let bytes = sample().into_bytes();
        // Tag, bitmap, free counts, hash table, entry flags.
        for at in [2, 3, 5, 12, 32, 33, 34, 160 + 46 * 2 + 1, 416, 448, 480, 2048 + 2, 2048 + 5] {
            let mut bytes = bytes.clone();
            bytes[at] ^= 0x40;
            let mut blob = Blob::from_bytes(bytes).unwrap();
            assert!(matches!(check(&mut blob), Err(DirError::Damaged(_))), "byte {at}");
        }
    }

    #[test]
    fn an_old_directory_need_not_say_its_length() {
        let mut bytes = sample().into_bytes();
        bytes[..2].fill(0);
        assert!(check(&mut Blob::from_bytes(bytes).unwrap()).is_ok());
    }
}
