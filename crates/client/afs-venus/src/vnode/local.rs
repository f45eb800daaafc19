//! Local state of a file: its data, its handles, and what the kernel may hold of it.
//!
//! Fields are private, and each method says what it changes; the rules for all of them are in [`crate::files`].

use std::sync::Arc;

use afs_wire::ids::DataVersion;

use crate::api::{BypassRequest, HandleId};
use crate::data::FileData;
use crate::identity::User;
use crate::key::Key;

/// Hidden name under which the server keeps a removed file for its handles: directory and name.
pub(crate) type HiddenName = (Key, Vec<u8>);

/// What the kernel's pages of a file are of.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Pages {
    /// Not known, or nothing.
    #[default]
    Unknown,
    /// The kernel drops them when it has the reply to this open, and then reads this version.
    Opening(DataVersion, HandleId),
    /// This version.
    Of(DataVersion),
}

/// Local state of a file.
#[derive(Default)]
pub(crate) struct LocalFile {
    /// Current data of a file that is open or dirty.
    data: Option<Arc<FileData>>,
    /// Bytes in holes of a version, known when its data was retired.
    holes: Option<(DataVersion, u64)>,
    pages: Pages,
    /// Number of handles.
    opens: u32,
    /// The user who made the last one.
    opened_by: User,
    /// True if the last name is gone, and the handles continue without the server.
    orphan: bool,
    /// Removals of its names by this client that are in progress.
    removals: u32,
    /// One of them has taken the last name.
    removed_here: bool,
    hidden_as: Option<HiddenName>,
    bypass_request: BypassRequest,
    /// The version that was read from one end to the other past the cache, and the first handle that did.
    streamed: Option<(DataVersion, HandleId)>,
}

impl LocalFile {
    /// Current data.
    pub fn data(&self) -> Option<&Arc<FileData>> {
        self.data.as_ref()
    }

    /// Replaces the current data; returns the previous data.
    pub fn replace_data(&mut self, data: &Arc<FileData>) -> Option<Arc<FileData>> {
        self.data.replace(data.clone())
    }

    /// Drops the data of a version; `hole_bytes` of it were in holes, if known.
    pub fn retire_data(&mut self, version: DataVersion, hole_bytes: Option<u64>) {
        self.data = None;
        self.holes = hole_bytes.map(|bytes| (version, bytes));
    }

    /// Drops and returns the current data.
    pub fn drop_data(&mut self) -> Option<Arc<FileData>> {
        self.data.take()
    }

    /// The same if a condition holds.
    pub fn drop_data_if(&mut self, is_such: impl FnOnce(&FileData) -> bool) -> Option<Arc<FileData>> {
        self.data.take_if(|data| is_such(data))
    }

    /// Bytes in holes of a version, known when its data was retired.
    pub fn hole_bytes(&self, version: DataVersion) -> Option<u64> {
        self.holes.filter(|(of, _)| *of == version).map(|(_, bytes)| bytes)
    }

    /// Whether the kernel's pages are of a version that a handle opens. If not, the kernel is to drop them.
    pub fn keeps_pages(&mut self, version: DataVersion, opening: HandleId) -> bool {
        let keeps = self.pages == Pages::Of(version);
        if !keeps {
            self.pages = Pages::Opening(version, opening);
        }
        keeps
    }

    /// The kernel has the reply to the open of a handle.
    pub fn pages_opened(&mut self, opened: HandleId) {
        if let Pages::Opening(version, by) = self.pages
            && by == opened
        {
            self.pages = Pages::Of(version);
        }
    }

    /// The kernel's pages became those of another version, if they were of any.
    pub fn pages_stored(&mut self, version: DataVersion) {
        if let Pages::Of(_) = self.pages {
            self.pages = Pages::Of(version);
        }
    }

    /// The next open drops the kernel's pages.
    pub fn forget_pages(&mut self) {
        self.pages = Pages::Unknown;
    }

    /// Number of handles.
    pub fn opens(&self) -> u32 {
        self.opens
    }

    /// Adds a handle of a user.
    pub fn open(&mut self, user: User) {
        self.opens += 1;
        self.opened_by = user;
    }

    /// The user who made the last handle.
    pub fn opened_by(&self) -> User {
        self.opened_by
    }

    /// Removes a handle. After the last one returns the hidden name, to be removed, if there is one.
    pub fn close(&mut self) -> Option<HiddenName> {
        self.opens = self.opens.saturating_sub(1);
        if self.opens == 0 { self.hidden_as.take() } else { None }
    }

    /// True if the last name is gone, and the handles continue without the server.
    pub fn is_orphan(&self) -> bool {
        self.orphan
    }

    /// Records the removal of the last name: a file with handles becomes an orphan.
    pub fn lose_name(&mut self) {
        self.orphan |= self.opens > 0;
    }

    /// This client begins to remove a name.
    pub fn begin_removal(&mut self) {
        self.removals += 1;
    }

    /// It has removed the name, or could not.
    pub fn end_removal(&mut self) {
        self.removals = self.removals.saturating_sub(1);
        self.removed_here |= self.orphan;
    }

    /// True if this client has removed the last name, or is about to remove one.
    pub fn is_removed_here(&self) -> bool {
        self.removed_here || self.removals > 0
    }

    /// Ends the state of an orphan after its last handle.
    pub fn end_orphan(&mut self) {
        self.orphan = false;
        self.removed_here = false;
    }

    /// Sets the hidden name. Returns it if it is to be removed at once: the last handle was closed while the name was made, or the
    /// file got another one.
    #[must_use]
    pub fn hide_as(&mut self, name: HiddenName) -> Option<HiddenName> {
        if self.opens == 0 || self.hidden_as.is_some() {
            return Some(name);
        }
        self.hidden_as = Some(name);
        None
    }

    /// True if the server keeps the file under a hidden name.
    pub fn is_hidden(&self) -> bool {
        self.hidden_as.is_some()
    }

    /// What a user has requested for the file.
    pub fn bypass_request(&self) -> BypassRequest {
        self.bypass_request
    }

    /// A user requests this.
    pub fn request_bypass(&mut self, request: BypassRequest) {
        self.bypass_request = request;
    }

    /// A handle reads a version from one end to the other. Whether it is the first to do so.
    pub fn is_first_stream(&mut self, version: DataVersion, handle: HandleId) -> bool {
        match self.streamed {
            Some((of, first)) if of == version => first == handle,
            _ => {
                self.streamed = Some((version, handle));
                true
            }
        }
    }

    /// True if programs use the file, or if it has state known only here.
    pub fn is_in_use(&self) -> bool {
        self.opens > 0 || self.data.is_some() || self.orphan || self.hidden_as.is_some()
    }
}
