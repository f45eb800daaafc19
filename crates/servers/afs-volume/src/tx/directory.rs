//! Directories within a transaction: only the pages touched are read, and only those changed are written.

use afs_wire::dir::{self, DirError, PAGE_LEN, Page, Pages, PagesMut, Target};
use afs_wire::ids::VnodeId;
use bytes::Bytes;

use super::{Actor, VolumeTx};
use crate::error::VolumeError;
use crate::ids::{ContentId, SlotIndex};
use crate::key::RowId;
use crate::record::{VnodeRecord, blocks};
use crate::rows::{Rows, damaged};

/// A directory's pages in this transaction, by index.
pub(super) type HeldPages = Vec<HeldPage>;

#[derive(Default)]
pub(super) enum HeldPage {
    #[default]
    Unread,
    Read(Bytes),
    Changed(Box<Page>),
}

/// A directory's pages, over the transaction, which lends those that are looked at.
struct TxPages<'x, 't, 'a> {
    tx: &'x VolumeTx<'t, 'a>,
    vnode: VnodeId,
    content: ContentId,
    held: HeldPages,
}

impl VolumeTx<'_, '_> {
    /// The target of a name in a directory.
    pub fn lookup(&mut self, directory: &VnodeRecord, name: &[u8]) -> Result<Option<Target>, VolumeError> {
        self.with_pages(directory, |pages| dir::lookup(pages, name))
    }

    /// Whether a directory has no names but `.` and `..`.
    pub fn is_empty_directory(&mut self, directory: &VnodeRecord) -> Result<bool, VolumeError> {
        self.with_pages(directory, |pages| dir::is_empty(pages))
    }

    pub(super) fn make_pages(
        &mut self,
        directory: &mut VnodeRecord,
        parent: Target,
    ) -> Result<(), VolumeError> {
        let this = (directory.vnode, directory.unique);
        self.edit_pages(directory, |pages| dir::create(pages, this, parent))
    }

    pub(super) fn insert_name(
        &mut self,
        directory: &mut VnodeRecord,
        name: &[u8],
        target: Target,
    ) -> Result<(), VolumeError> {
        let before = blocks(directory.length);
        self.edit_pages(directory, |pages| dir::insert(pages, name, target))?;
        self.charge_anyway(blocks(directory.length) - before);
        Ok(())
    }

    pub(super) fn remove_name(
        &mut self,
        directory: &mut VnodeRecord,
        name: &[u8],
    ) -> Result<(), VolumeError> {
        self.edit_pages(directory, |pages| dir::remove(pages, name)).map(drop)
    }

    pub(super) fn replace_name(
        &mut self,
        directory: &mut VnodeRecord,
        name: &[u8],
        target: Target,
    ) -> Result<(), VolumeError> {
        self.edit_pages(directory, |pages| dir::replace(pages, name, target)).map(drop)
    }

    /// Counts a change of a directory's entries: once for each directory and call.
    pub(super) fn touch_directory(&mut self, directory: &mut VnodeRecord, actor: Actor) {
        directory.data_version = directory.data_version.next();
        directory.author = actor.id;
        self.note_change(directory);
        directory.client_mod_time = self.modified_at(directory);
        self.note_update();
    }

    /// Records in the header that a client made a change.
    pub(super) fn note_update(&mut self) {
        self.header.update_date = self.now.seconds();
        self.header.update_counter = self.header.update_counter.wrapping_add(1);
        self.header_changed = true;
    }

    pub(super) fn put_pages(&mut self) -> Result<(), VolumeError> {
        for (content, pages) in std::mem::take(&mut self.pages) {
            for (number, page) in pages.into_iter().enumerate() {
                if let HeldPage::Changed(page) = page {
                    let id = RowId::Page(self.header.group, content, SlotIndex(number as u32));
                    self.put_row(id, Some(page.to_vec()))?;
                }
            }
        }
        Ok(())
    }

    /// Drops the held pages of a directory that is being deleted.
    pub(super) fn forget_pages(&mut self, content: ContentId) {
        self.pages.remove(&content);
    }

    fn with_pages<T>(
        &mut self,
        directory: &VnodeRecord,
        act: impl FnOnce(&mut TxPages<'_, '_, '_>) -> Result<T, DirError<VolumeError>>,
    ) -> Result<T, VolumeError> {
        let mut held = self.pages.remove(&directory.content).unwrap_or_default();
        let count = (directory.length / PAGE_LEN as u64).min(dir::PAGES_MAX.into());
        held.resize_with(count as usize, HeldPage::default);
        let mut pages = TxPages { tx: self, vnode: directory.vnode, content: directory.content, held };
        let result = act(&mut pages).map_err(|error| refusal(directory.vnode, error));
        let held = pages.held;
        self.pages.insert(directory.content, held);
        result
    }

    fn edit_pages<T>(
        &mut self,
        directory: &mut VnodeRecord,
        act: impl FnOnce(&mut TxPages<'_, '_, '_>) -> Result<T, DirError<VolumeError>>,
    ) -> Result<T, VolumeError> {
        let mut count = 0;
        let result = self.with_pages(directory, |pages| {
            let result = act(pages);
            count = pages.held.len();
            result
        });
        directory.length = (count * PAGE_LEN) as u64;
        result
    }
}

impl Pages for TxPages<'_, '_, '_> {
    type Error = VolumeError;

    fn count(&self) -> u16 {
        self.held.len() as u16
    }

    fn page(&mut self, number: u16) -> Result<&Page, VolumeError> {
        self.load(number)?;
        match self.held.get(usize::from(number)) {
            Some(HeldPage::Changed(page)) => Ok(page),
            Some(HeldPage::Read(bytes)) => whole(bytes).ok_or_else(|| self.lost()),
            _ => Err(self.lost()),
        }
    }
}

impl PagesMut for TxPages<'_, '_, '_> {
    fn page_mut(&mut self, number: u16) -> Result<&mut Page, VolumeError> {
        self.load(number)?;
        let lost = || damaged(self.vnode, LOST);
        let held = self.held.get_mut(usize::from(number)).ok_or_else(lost)?;
        if let HeldPage::Read(bytes) = held {
            let page = *whole(bytes).ok_or_else(lost)?;
            *held = HeldPage::Changed(Box::new(page));
        }
        match held {
            HeldPage::Changed(page) => Ok(page),
            _ => Err(lost()),
        }
    }

    fn append(&mut self) -> Result<&mut Page, VolumeError> {
        self.held.push(HeldPage::Changed(Box::new([0; PAGE_LEN])));
        self.page_mut((self.held.len() - 1) as u16)
    }
}

impl TxPages<'_, '_, '_> {
    fn load(&mut self, number: u16) -> Result<(), VolumeError> {
        if let Some(HeldPage::Unread) = self.held.get(usize::from(number)) {
            let header = &self.tx.header;
            let page = SlotIndex(number.into());
            let row = self.tx.txn.page_row(header.group, self.content, page, header.epoch)?;
            let row = row.filter(|row| row.len() == PAGE_LEN).ok_or_else(|| self.lost())?;
            self.held[usize::from(number)] = HeldPage::Read(row);
        }
        Ok(())
    }

    fn lost(&self) -> VolumeError {
        damaged(self.vnode, LOST)
    }
}

fn whole(bytes: &Bytes) -> Option<&Page> {
    bytes.first_chunk()
}

fn refusal(vnode: VnodeId, error: DirError<VolumeError>) -> VolumeError {
    match error {
        DirError::Pages(error) => error,
        DirError::Exists => VolumeError::Exists,
        DirError::NotFound => VolumeError::NotFound,
        DirError::Full => VolumeError::TooLarge,
        DirError::BadName => VolumeError::Invalid,
        DirError::Damaged(what) => damaged(vnode, what),
    }
}

const LOST: &str = "a page of the directory is missing";
