//! Journal of operations that is chosen at its first use: the cell's own, or one in files if the cell keeps none.
//! Commands that only read use no journal.

use super::journal_files::FileJournal;
use afs_admin::CellJournal;
use afs_admin::journal::{Draft, Holder, Journal, JournalError, Lease, OperationId, Pending, Record};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// The choice between the cell's journal and one in files.
pub(super) struct JournalChoice {
    cell: CellJournal,
    /// Directory of the journal in files.
    files: PathBuf,
    chosen: OnceLock<Arc<dyn Journal>>,
}

impl JournalChoice {
    /// The cell's journal, or else one in a directory.
    pub(super) fn new(cell: CellJournal, files: PathBuf) -> Self {
        Self { cell, files, chosen: OnceLock::new() }
    }

    async fn chosen(&self) -> Result<&dyn Journal, JournalError> {
        if let Some(chosen) = self.chosen.get() {
            return Ok(&**chosen);
        }
        let choice: Arc<dyn Journal> = if self.cell.is_kept().await {
            Arc::new(self.cell.clone())
        } else {
            let files = FileJournal::open(self.files.clone());
            Arc::new(files.map_err(|error| JournalError::Store(error.message))?)
        };
        Ok(&**self.chosen.get_or_init(|| choice))
    }
}

impl Journal for JournalChoice {
    fn begin(&self, draft: Draft) -> Pending<'_, Lease> {
        Box::pin(async move { self.chosen().await?.begin(draft).await })
    }

    fn step(&self, lease: Lease, step: String, detail: Bytes) -> Pending<'_, ()> {
        Box::pin(async move { self.chosen().await?.step(lease, step, detail).await })
    }

    fn heartbeat(&self, lease: Lease) -> Pending<'_, ()> {
        Box::pin(async move { self.chosen().await?.heartbeat(lease).await })
    }

    fn end(&self, lease: Lease) -> Pending<'_, ()> {
        Box::pin(async move { self.chosen().await?.end(lease).await })
    }

    fn open(&self) -> Pending<'_, Vec<Record>> {
        Box::pin(async move { self.chosen().await?.open().await })
    }

    fn take_over(&self, id: OperationId, holder: Holder) -> Pending<'_, (Lease, Record)> {
        Box::pin(async move { self.chosen().await?.take_over(id, holder).await })
    }
}
