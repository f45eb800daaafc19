//! Edits of a directory: create, insert, remove, replace. Source: `docs/protocol/directory.md` "3. Algorithms".

use super::find::{find, first_page};
use super::page::{self, NO_PAGE, Position};
use super::{DirError, PAGES_MAX, Page, PagesMut, Target, check_name, hash};

type Outcome<T, P> = Result<T, DirError<<P as super::Pages>::Error>>;

/// Creates a directory with `.` and `..` in an empty set of pages.
///
/// The root directory of a volume is its own parent.
///
/// # Errors
/// [`DirError::Exists`] when there are pages already; [`DirError::Pages`].
pub fn create<P: PagesMut>(pages: &mut P, this: Target, parent: Target) -> Outcome<(), P> {
    if pages.count() != 0 {
        return Err(DirError::Exists);
    }
    let page0 = pages.append().map_err(DirError::Pages)?;
    page::format(page0, 0);
    page::set_page_count(page0, 1);
    page::set_free_count(page0, 0, 51);
    for number in 1..page::COUNTED_PAGES {
        page::set_free_count(page0, number, NO_PAGE);
    }
    insert(pages, b".", this)?;
    insert(pages, b"..", parent)
}

/// Adds a name.
///
/// # Errors
/// [`DirError::BadName`], [`DirError::Exists`], [`DirError::Full`], [`DirError::Damaged`], [`DirError::Pages`].
pub fn insert<P: PagesMut>(pages: &mut P, name: &[u8], target: Target) -> Outcome<(), P> {
    check_name(name)?;
    if find(pages, name)?.is_some() {
        return Err(DirError::Exists);
    }
    let slots = page::slots_for(name.len());
    let position = allocate(pages, slots)?;
    let bucket = hash::bucket(name);
    let page0 = first_page_mut(pages)?;
    let next = page::chain_head(page0, bucket);
    page::set_chain_head(page0, bucket, position.number());
    let page = pages.page_mut(position.page).map_err(DirError::Pages)?;
    page::set_bitmap(page, page::bitmap(page) | page::slot_bits(position.slot, slots));
    page::put_entry(page, position, next, target, name);
    count_slots(pages, position.page, |free| free.saturating_sub(slots as u8))
}

/// Removes a name and returns its target. The directory does not shrink.
///
/// # Errors
/// [`DirError::NotFound`], [`DirError::Damaged`], [`DirError::Pages`].
pub fn remove<P: PagesMut>(pages: &mut P, name: &[u8]) -> Outcome<Target, P> {
    let found = find(pages, name)?.ok_or(DirError::NotFound)?;
    match found.previous {
        Some(previous) => {
            let page = pages.page_mut(previous.page).map_err(DirError::Pages)?;
            page::put_next(page, previous, found.next);
        }
        None => page::set_chain_head(first_page_mut(pages)?, hash::bucket(name), found.next),
    }
    let slots = page::slots_for(name.len());
    let page = pages.page_mut(found.position.page).map_err(DirError::Pages)?;
    page::clear_slots(page, found.position, slots);
    page::set_bitmap(page, page::bitmap(page) & !page::slot_bits(found.position.slot, slots));
    count_slots(pages, found.position.page, |free| free.saturating_add(slots as u8).min(NO_PAGE))?;
    Ok(found.target)
}

/// Replaces the target of an existing name and returns the old one. The entry stays in its place.
///
/// # Errors
/// [`DirError::NotFound`], [`DirError::Damaged`], [`DirError::Pages`].
pub fn replace<P: PagesMut>(pages: &mut P, name: &[u8], target: Target) -> Outcome<Target, P> {
    let found = find(pages, name)?.ok_or(DirError::NotFound)?;
    let page = pages.page_mut(found.position.page).map_err(DirError::Pages)?;
    page::put_target(page, found.position, target);
    Ok(found.target)
}

/// Finds the first free slots in a row, in a new page if there are none. Marks nothing yet.
fn allocate<P: PagesMut>(pages: &mut P, slots: u16) -> Outcome<Position, P> {
    let page0 = first_page(pages)?;
    let counts: [Option<u8>; page::COUNTED_PAGES as usize] =
        std::array::from_fn(|number| page::free_count(page0, number as u16));
    let count = pages.count().min(PAGES_MAX);
    for number in 0..count {
        // Pages without a free count must be examined one by one.
        let counted = counts.get(usize::from(number)).copied().flatten();
        if counted == Some(NO_PAGE) {
            return Err(DirError::Damaged("the slots of a page are not counted"));
        }
        if counted.is_some_and(|free| u16::from(free) < slots) {
            continue;
        }
        let page = pages.page(number).map_err(DirError::Pages)?;
        if !page::has_tag(page) {
            return Err(DirError::Damaged("a page lacks its tag"));
        }
        // A damaged bitmap must not lead into the headers.
        if let Some(slot) = page::first_free_run(page::bitmap(page) | page::header_bits(number), slots) {
            return Ok(Position { page: number, slot });
        }
    }
    add_page(pages, count)?;
    Ok(Position { page: count, slot: 1 })
}

fn add_page<P: PagesMut>(pages: &mut P, number: u16) -> Outcome<(), P> {
    if number >= PAGES_MAX {
        return Err(DirError::Full);
    }
    let page = pages.append().map_err(DirError::Pages)?;
    page::format(page, number);
    let page0 = first_page_mut(pages)?;
    page::set_page_count(page0, number + 1);
    page::set_free_count(page0, number, 63);
    Ok(())
}

fn first_page_mut<P: PagesMut>(pages: &mut P) -> Outcome<&mut Page, P> {
    pages.page_mut(0).map_err(DirError::Pages)
}

fn count_slots<P: PagesMut>(pages: &mut P, number: u16, change: impl FnOnce(u8) -> u8) -> Outcome<(), P> {
    if number < page::COUNTED_PAGES {
        let page0 = first_page_mut(pages)?;
        let free = page::free_count(page0, number).unwrap_or_default();
        page::set_free_count(page0, number, change(free));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dir::{Blob, Pages, is_empty, lookup};
    use crate::ids::{Uniquifier, VnodeId};

    const THIS: Target = (VnodeId(3), Uniquifier(17));
    const PARENT: Target = (VnodeId(1), Uniquifier(1));
    const FILE: Target = (VnodeId(2), Uniquifier(5));

    #[test]
    fn the_worked_example() {
        let blob = Blob::create(THIS, PARENT);
        let bytes = blob.as_bytes();
        assert_eq!(bytes.len(), 2048);
        assert_eq!(bytes[..13], [0, 1, 4, 0xd2, 0x33, 0xff, 0x7f, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..36], [0x31, 0x40, 0x40, 0x40]);
        assert_eq!(bytes[160 + 2 * 46..][..2], [0, 0x0d]);
        assert_eq!(bytes[160 + 2 * 68..][..2], [0, 0x0e]);
        assert_eq!(bytes[416..430], [1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0x11, 0x2e, 0]);
        assert_eq!(bytes[448..463], [1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0x2e, 0x2e, 0]);
    }

    #[test]
    fn names_come_and_go() {
        let mut blob = Blob::create(THIS, PARENT);
        insert(&mut blob, b"foo", FILE).unwrap();
        assert_eq!(insert(&mut blob, b"foo", FILE), Err(DirError::Exists));
        assert_eq!(lookup(&mut blob, b"foo"), Ok(Some(FILE)));
        assert_eq!(replace(&mut blob, b"foo", PARENT), Ok(FILE));
        assert_eq!(lookup(&mut blob, b"foo"), Ok(Some(PARENT)));
        assert_eq!(is_empty(&mut blob), Ok(false));
        assert_eq!(remove(&mut blob, b"foo"), Ok(PARENT));
        assert_eq!(remove(&mut blob, b"foo"), Err(DirError::NotFound));
        assert_eq!(is_empty(&mut blob), Ok(true));
        assert_eq!(blob, Blob::create(THIS, PARENT), "nothing is left of it");
    }

    #[test]
    fn dot_dot_changes_in_its_place() {
        let mut blob = Blob::create(THIS, PARENT);
        insert(&mut blob, b"x", FILE).unwrap();
        replace(&mut blob, b"..", FILE).unwrap();
        assert_eq!(blob.as_bytes()[448..460], [1, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 5]);
    }

    #[test]
    fn bad_names_are_refused() {
        let mut blob = Blob::create(THIS, PARENT);
        for name in [&b""[..], b"a/b", b"a\0b", &[b'x'; 257]] {
            assert_eq!(insert(&mut blob, name, FILE), Err(DirError::BadName));
        }
        insert(&mut blob, &[b'x'; 256], FILE).unwrap();
        assert_eq!(blob.lookup(&[b'x'; 256]), Ok(Some(FILE)));
    }

    #[test]
    fn a_directory_holds_31706_names_of_two_slots_and_no_more() {
        let mut blob = Blob::create(THIS, PARENT);
        let name = |number: u32| format!("sixteen or more {number}");
        for number in 0..31_706 {
            insert(&mut blob, name(number).as_bytes(), (VnodeId(number), Uniquifier(1))).unwrap();
        }
        assert_eq!(blob.count(), PAGES_MAX);
        assert_eq!(insert(&mut blob, name(31_706).as_bytes(), FILE), Err(DirError::Full));
        assert_eq!(blob.lookup(name(31_705).as_bytes()), Ok(Some((VnodeId(31_705), Uniquifier(1)))));
        remove(&mut blob, name(31_000).as_bytes()).unwrap();
        insert(&mut blob, name(31_706).as_bytes(), FILE).unwrap();
        assert_eq!(crate::dir::check(&mut blob).unwrap().entries, 31_706);
    }
}
