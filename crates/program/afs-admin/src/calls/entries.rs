//! List of the location database, page by page; it ends, whatever the server replies.

use afs_wire::vl::{Attributes, ENTRIES_MAX, Entry, ListAttributesN2, NameText};

use crate::Admin;
use crate::error::{AdminError, AdminResult};

const DOING: &str = "Could not list the VLDB";
/// The index after the last page.
const END: i32 = -1;

/// Where a list is.
struct Position {
    /// Index of the next page.
    start: i32,
    /// Entries that may still come. A page counts at least as one, also without entries.
    left: usize,
}

impl Admin {
    /// Calls `each` with the entries that have these attributes.
    ///
    /// # Errors
    /// No location server replies; or one whose pages do not go forward, or have more than [`ENTRIES_MAX`] entries together.
    pub(crate) async fn each_entry(
        &self,
        attributes: Attributes,
        mut each: impl FnMut(&Entry),
    ) -> AdminResult {
        let mut position = Position { start: 0, left: ENTRIES_MAX };
        loop {
            let request = ListAttributesN2 { attributes, name: NameText::default(), start: position.start };
            let page = self.locate(&request).await;
            let page = page.map_err(|e| AdminError::call(DOING, None, e))?;
            let is_last = position.page(page.entries.len(), page.next).map_err(|why| self.endless(&why))?;
            page.entries.iter().for_each(&mut each);
            if is_last {
                return Ok(());
            }
        }
    }

    fn endless(&self, why: &str) -> AdminError {
        let server = self.cell().location.get(self.preferred());
        let server = server.map(|server| server.ip().to_string()).unwrap_or_default();
        AdminError::failed(DOING, format!("the location server {server} sent {why}"))
    }
}

impl Position {
    /// A page of so many entries has come. Whether it is the last one.
    fn page(&mut self, entries: usize, next: i32) -> Result<bool, String> {
        let left = self.left.checked_sub(entries.max(1));
        self.left = left.ok_or_else(|| format!("more than {ENTRIES_MAX} entries"))?;
        if next != END && next <= self.start {
            return Err(format!("{next} as the index after {}", self.start));
        }
        self.start = next;
        Ok(next == END)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_entries_ends_whatever_its_pages_have() {
        for entries in [0, 1, 500, ENTRIES_MAX / 2] {
            let mut position = Position { start: 0, left: ENTRIES_MAX };
            let pages = (1..).take_while(|next| position.page(entries, *next).is_ok()).count();
            assert_eq!(pages, ENTRIES_MAX / entries.max(1), "pages of {entries} entries");
        }
    }

    #[test]
    fn a_list_of_entries_goes_forward() {
        let mut position = Position { start: 0, left: ENTRIES_MAX };
        assert_eq!(position.page(500, 7), Ok(false));
        for next in [7, 6, 0, -2, i32::MIN] {
            assert!(position.page(500, next).is_err_and(|why| why == format!("{next} as the index after 7")));
        }
        assert_eq!((position.page(0, 8), position.page(500, END)), (Ok(false), Ok(true)));
    }
}
