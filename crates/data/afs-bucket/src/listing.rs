//! Listing of the objects with a prefix, page by page, which ends: a store that lists without end is an error.

use afs_drive::DriveError;

use crate::bucket::Page;
use crate::claim::refused;
use crate::requests::Requests;

/// Most pages: a hundred million objects, which are petabytes of packs.
const PAGES_MAX: u32 = 100_000;

/// A listing in progress.
pub(crate) struct Listing<'a> {
    requests: &'a Requests,
    prefix: &'a str,
    /// The greatest key so far.
    after: Option<String>,
    pages: u32,
    is_over: bool,
}

impl<'a> Listing<'a> {
    pub(crate) fn new(requests: &'a Requests, prefix: &'a str) -> Self {
        Self { requests, prefix, after: None, pages: 0, is_over: false }
    }

    /// The next page; `None` after the last.
    ///
    /// # Errors
    /// The request fails, or there are more than 100,000 pages.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, DriveError> {
        if self.is_over {
            return Ok(None);
        }
        self.pages += 1;
        if self.pages > PAGES_MAX {
            return Err(refused(format!("the list of {} in the store does not end", self.prefix)));
        }
        let page = self.requests.list(self.prefix, self.after.as_deref()).await?;
        // One that does not go on is the last.
        let last = page.objects.last().filter(|last| page.more && Some(&last.key) > self.after.as_ref());
        match last {
            Some(last) => self.after = Some(last.key.clone()),
            None => self.is_over = true,
        }
        Ok(Some(page))
    }
}
