//! GetLayoutList, a call of our own: where the bytes of a long range of a file are, with one binding for all chunks at a drive
//! (docs/protocol/extensions.md "Layouts").

use std::ops::Range;
use std::sync::Arc;

use afs_datapath::capability::{ChunkList, Group, ListBinding, ListTerms, ListedChunk};
use afs_remote::Sealing;
use afs_rpc::Table;
use afs_volume::{DataRoute, LaidOut, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, LAYOUT_COPIES_MAX, LIST_ADDRESSED, LIST_COMMANDED, LISTED_PARTS_MAX, ListedCopy, ListedPart,
    ListedParts,
};
use afs_wire::xdr::{Encode, Fixed};

use super::layout::{Laid, Most, Sent, bounded, of_whole_pieces};
use super::server::{CallContext, FileServer};

/// 512 MiB of a file.
const MOST: Most = Most { parts: LISTED_PARTS_MAX, reads: 8 };

pub(super) fn add(table: Table<FileServer>) -> Table<FileServer> {
    super::call(table, |server: Arc<FileServer>, context, call: fs::GetLayoutList| async move {
        server.get_layout_list(&context, &call).await
    })
}

impl FileServer {
    async fn get_layout_list(
        &self,
        context: &CallContext,
        call: &fs::GetLayoutList,
    ) -> Result<fs::GetLayoutListReply, AbortCode> {
        let laid = self.lay_out(context, (call.fid, call.version), call.start..call.end, MOST).await?;
        let mut chunks = vec![Vec::new(); laid.drives.len()];
        let parts = laid.layout.parts.iter().map(|part| laid.listed(part, &mut chunks)).collect();
        let parts = ListedParts::new(parts).ok_or(Errno::E2BIG.to_uae())?;
        let lists = laid.lists(&chunks);
        Ok(fs::GetLayoutListReply {
            drives: bounded(laid.drives)?,
            lists: bounded(lists)?,
            parts,
            end: laid.layout.end,
        })
    }
}

impl Laid {
    /// A part with the copies that the client may read, which become elements of the lists of their drives.
    fn listed(&self, part: &LaidOut, chunks: &mut [Vec<ListedChunk>]) -> ListedPart {
        let mut listed = ListedPart { start: part.start, length: part.len, ..ListedPart::default() };
        for (at, offset) in part.copies.iter().copied() {
            let chunk = fs::ListedChunk { length: at.chunk.len, crc: at.chunk.crc, offset };
            let is_copy = listed.copies.is_empty() || listed.chunk == chunk;
            let Some((drive, range)) = self.place(at, offset, part.len).filter(|_| is_copy) else { continue };
            let Some(list) = chunks.get_mut(drive as usize) else { continue };
            list.push(ListedChunk { chunk: at.chunk, start: range.start, end: range.end });
            listed.chunk = chunk;
            listed.copies.push(ListedCopy { drive, id: u128::from_be_bytes(at.chunk.id.to_bytes()) });
            if listed.copies.len() == LAYOUT_COPIES_MAX {
                break;
            }
        }
        listed
    }

    /// Where in the reply the drive of a copy is that the client may read, and what it may read of the chunk.
    fn place(&self, at: LocatedChunk, offset: u32, len: u32) -> Option<(u32, Range<u32>)> {
        let drive = match self.sents.get(&at.drive) {
            Some(sent) => sent.place,
            None => self.buckets.copy(at, offset, len)?.drive,
        };
        Some((drive, of_whole_pieces(at, offset, len)?))
    }

    /// For each drive of the reply what its chunks are read by. Nothing is bound where no part is.
    fn lists(&self, chunks: &[Vec<ListedChunk>]) -> Vec<Fixed<40>> {
        let mut lists = vec![LIST_ADDRESSED; chunks.len()];
        for sent in self.sents.values() {
            let Some((list, chunks)) =
                lists.get_mut(sent.place as usize).zip(chunks.get(sent.place as usize))
            else {
                continue;
            };
            let bound = match self.route {
                DataRoute::Commanded => None,
                _ => self.bound(sent, chunks),
            };
            *list = bound.unwrap_or(LIST_COMMANDED);
        }
        lists
    }

    fn bound(&self, Sent { direct, sealing, .. }: &Sent, chunks: &[ListedChunk]) -> Option<Fixed<40>> {
        let Sealing { key, generation, .. } = sealing;
        let file = key.tag(Group::File(self.file));
        let terms = ListTerms { store: direct.options().store, file, generation: *generation };
        let binding = key.bind_list(key.tag(self.group), &ChunkList::new(chunks)?, terms).to_bytes();
        let binding: [u8; ListBinding::WIRE_LEN] = binding.try_into().ok()?;
        Some(Fixed(binding))
    }
}
