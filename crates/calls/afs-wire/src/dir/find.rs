//! Look-up of a name in its hash chain.

use super::page::{self, Position};
use super::{DirError, Page, Pages, Target, check_name, hash};

/// The target of a name, or `None`.
///
/// Cost: the pages of one hash chain, on average one in 128 of the directory's entries.
///
/// # Errors
/// [`DirError::Damaged`] when the chain leaves the directory or is a cycle; [`DirError::Pages`].
pub fn lookup<P: Pages>(pages: &mut P, name: &[u8]) -> Result<Option<Target>, DirError<P::Error>> {
    Ok(find(pages, name)?.map(|found| found.target))
}

/// An entry with its predecessor and successor in the chain.
pub(super) struct Found {
    pub(super) position: Position,
    /// The entry before it in its chain, unless it is the first.
    pub(super) previous: Option<Position>,
    /// Blob number of the entry after it; 0 is none.
    pub(super) next: u16,
    pub(super) target: Target,
}

pub(super) fn find<P: Pages>(pages: &mut P, name: &[u8]) -> Result<Option<Found>, DirError<P::Error>> {
    // A name with a NUL would match the bytes behind a shorter one.
    if check_name::<P::Error>(name).is_err() {
        return Ok(None);
    }
    let count = pages.count();
    let mut number = page::chain_head(first_page(pages)?, hash::bucket(name));
    let mut previous = None;
    for _ in 0..chain_len_max(count) {
        if number == 0 {
            return Ok(None);
        }
        let position =
            Position::from_number(number, count).ok_or(DirError::Damaged("a hash chain leaves the pages"))?;
        let page = pages.page(position.page).map_err(DirError::Pages)?;
        let link = page::link(page, position, name);
        if !link.live {
            return Err(DirError::Damaged("a hash chain leads to a free slot"));
        }
        if link.matches {
            return Ok(Some(Found {
                position,
                previous,
                next: link.next,
                target: page::target(page, position),
            }));
        }
        number = link.next;
        previous = Some(position);
    }
    Err(DirError::Damaged("a hash chain goes round in circles"))
}

/// Page 0, if it has the form of one.
pub(super) fn first_page<P: Pages>(pages: &mut P) -> Result<&Page, DirError<P::Error>> {
    if pages.count() == 0 {
        return Err(DirError::Damaged("it has no page"));
    }
    let page = pages.page(0).map_err(DirError::Pages)?;
    if page::has_tag(page) { Ok(page) } else { Err(DirError::Damaged("page 0 lacks its tag")) }
}

/// No chain has more entries than the directory has slots.
fn chain_len_max(count: u16) -> u32 {
    u32::from(count) * u32::from(page::SLOTS)
}
