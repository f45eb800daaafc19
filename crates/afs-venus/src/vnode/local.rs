//! What is on this machine of a file: its data, the handles on it, and what the kernel may have of it.
//!
//! Fields are private, and each method says what it changes: the rules that hold for them together are those of [`crate::files`].

use std::sync::Arc;

use afs_wire::ids::DataVersion;

use crate::data::FileData;
use crate::key::Key;

/// A name under which the server keeps a removed file for its handles: the directory, and the name in it.
pub(crate) type HiddenName = (Key, Vec<u8>);

/// The local side of a file.
#[derive(Default)]
pub(crate) struct LocalFile {
    /// Data of a file that is open, or has something unsaved.
    data: Option<Arc<FileData>>,
    /// How many bytes of a version are in holes, as its data told when they were put away.
    holes: Option<(DataVersion, u64)>,
    /// The version of which the kernel may hold pages.
    pages: Option<DataVersion>,
    /// Handles.
    opens: u32,
    /// The last name is gone, and the handles go on without the server.
    orphan: bool,
    hidden_as: Option<HiddenName>,
}

impl LocalFile {
    /// What a file is opened with.
    pub fn data(&self) -> Option<&Arc<FileData>> {
        self.data.as_ref()
    }

    /// Other data is the file's from now on; answers the data before.
    pub fn replace_data(&mut self, data: &Arc<FileData>) -> Option<Arc<FileData>> {
        self.data.replace(data.clone())
    }

    /// The data of a version is put away; of its bytes so many were in holes, if that is known.
    pub fn retire_data(&mut self, version: DataVersion, hole_bytes: Option<u64>) {
        self.data = None;
        self.holes = hole_bytes.map(|bytes| (version, bytes));
    }

    /// The file is rid of its data, which is answered.
    pub fn drop_data(&mut self) -> Option<Arc<FileData>> {
        self.data.take()
    }

    /// The same if the data is such.
    pub fn drop_data_if(&mut self, is_such: impl FnOnce(&FileData) -> bool) -> Option<Arc<FileData>> {
        self.data.take_if(|data| is_such(data))
    }

    /// How many bytes of a version were in holes when its data was put away.
    pub fn hole_bytes(&self, version: DataVersion) -> Option<u64> {
        self.holes.filter(|(of, _)| *of == version).map(|(_, bytes)| bytes)
    }

    /// The version of which the kernel may hold pages.
    pub fn pages(&self) -> Option<DataVersion> {
        self.pages
    }

    /// The kernel's pages are those of a version, or of none that is known.
    pub fn set_pages(&mut self, version: Option<DataVersion>) {
        self.pages = version;
    }

    /// Handles.
    pub fn opens(&self) -> u32 {
        self.opens
    }

    /// One more handle.
    pub fn open(&mut self) {
        self.opens += 1;
    }

    /// One handle less. After the last one the hidden name is to be removed, if there is one.
    pub fn close(&mut self) -> Option<HiddenName> {
        self.opens = self.opens.saturating_sub(1);
        if self.opens == 0 { self.hidden_as.take() } else { None }
    }

    /// Whether the last name is gone, and the handles go on without the server.
    pub fn is_orphan(&self) -> bool {
        self.orphan
    }

    /// The last name is gone: with handles it is an orphan.
    pub fn lose_name(&mut self) {
        self.orphan |= self.opens > 0;
    }

    /// The last handle of an orphan is gone.
    pub fn end_orphan(&mut self) {
        self.orphan = false;
    }

    /// The server keeps the file under this name until the last handle is closed.
    pub fn hide_as(&mut self, name: HiddenName) {
        self.hidden_as = Some(name);
    }

    /// Whether the server keeps it under a name of ours.
    pub fn is_hidden(&self) -> bool {
        self.hidden_as.is_some()
    }

    /// Whether something here is used by programs, or known here only.
    pub fn is_in_use(&self) -> bool {
        self.opens > 0 || self.data.is_some() || self.orphan || self.hidden_as.is_some()
    }
}
