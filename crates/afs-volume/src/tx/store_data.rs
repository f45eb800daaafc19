//! Storing data. Source: `docs/protocol/fileserver.md` "4. Data framing on the split calls" and "11. Quota and space".

use afs_wire::fs::{FileKind, SetStatus};
use afs_wire::ids::{Fid, Mode};

use super::quota::STORE_SPARE;
use super::{Actor, VolumeTx};
use crate::error::VolumeError;
use crate::extent::{Extent, SLOT_LEN, Source};
use crate::ids::SlotIndex;
use crate::new_data::{NewData, Piece, Stored};
use crate::record::{VnodeRecord, blocks};

/// What a store asks for, besides the bytes.
#[derive(Clone, Copy, Debug)]
pub struct StoreData {
    /// The file.
    pub fid: Fid,
    /// What the file is cut to before the bytes are written, if it is longer.
    pub file_length: u64,
    /// Status to set along with the data.
    pub status: SetStatus,
}

impl VolumeTx<'_, '_> {
    /// Makes new bytes part of a file and counts one change of its data.
    ///
    /// With no bytes this cuts the file to `file_length`, or grows it with zeros to the position of `data`.
    pub fn store_data(
        &mut self,
        store: StoreData,
        data: NewData,
        actor: Actor,
    ) -> Result<VnodeRecord, VolumeError> {
        let mut record = self.vnode(store.fid)?;
        if record.kind != FileKind::File {
            return Err(VolumeError::IsDirectory);
        }
        let cut = record.length.min(store.file_length);
        let length = cut.max(data.end());
        let (before, after) = (record.blocks(), blocks(length));
        self.charge(after.saturating_sub(before), STORE_SPARE)?;
        self.credit(before.saturating_sub(after));
        if cut < record.length {
            self.truncate(&mut record, cut)?;
        }
        for piece in data.pieces() {
            self.put_piece(&record, piece)?;
        }
        record.length = length;
        record.data_version = record.data_version.next();
        record.author = actor.id;
        record.client_mod_time = self.now;
        if !actor.administrator {
            record.mode = Mode(record.mode.0 & Mode::PERMISSIONS);
        }
        self.apply_status(&mut record, &store.status, actor)?;
        record.server_mod_time = self.now;
        self.note_update();
        self.put_vnode(record.clone());
        self.keep_when_durable(data);
        Ok(record)
    }

    /// From the moment this is durable the chunks belong to the file.
    pub(crate) fn keep_when_durable(&mut self, data: NewData) {
        self.txn.before_visible(move |_| data.keep());
    }

    /// Where the bytes of a piece are, its chunk being the volume's from now on.
    pub(crate) fn source_of(&mut self, piece: &Piece) -> Source {
        match &piece.stored {
            Stored::Literal(bytes) => Source::Literal(bytes.clone()),
            Stored::Chunk(chunk) => {
                Source::Chunk { chunk: self.adopt_chunk(*chunk), offset: 0, len: chunk.len }
            }
        }
    }

    pub(super) fn put_piece(&mut self, record: &VnodeRecord, piece: &Piece) -> Result<(), VolumeError> {
        let index = SlotIndex((piece.position / SLOT_LEN) as u32);
        let source = self.source_of(piece);
        let extent = Extent { start: (piece.position % SLOT_LEN) as u32, source };
        let slot = self.edit_slot(record, index, |slot| slot.write(extent))?;
        if slot.needs_compaction() {
            // The background is far behind; the client tries again.
            return Err(VolumeError::Busy);
        }
        if slot.wants_compaction() {
            self.store.compactions.add(self.header.id, record.vnode, index);
            self.work = true;
        }
        Ok(())
    }
}
