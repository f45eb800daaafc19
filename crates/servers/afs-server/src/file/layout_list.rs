//! Parts of a layout as a reply has them: the chunks at each drive are a list, which is bound as a whole
//! (docs/protocol/extensions.md "Layouts").

use std::ops::Range;

use afs_datapath::capability::{ChunkList, Group, ListBinding, ListTerms, ListedChunk};
use afs_remote::Sealing;
use afs_volume::{DataRoute, LaidOut, LocatedChunk};
use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs::{
    self, FileLayout, LAYOUT_COPIES_MAX, LIST_ADDRESSED, LIST_COMMANDED, ListedCopy, ListedPart, ListedParts,
};
use afs_wire::xdr::{Encode, Fixed};

use super::layout::{Laid, Sent, bounded, of_whole_pieces};

impl Laid {
    /// As the reply has it.
    pub fn into_layout(self) -> Result<FileLayout, AbortCode> {
        let mut chunks = vec![Vec::new(); self.drives.len()];
        let parts = self.layout.parts.iter().map(|part| self.listed(part, &mut chunks)).collect();
        let parts = ListedParts::new(parts).ok_or(Errno::E2BIG.to_uae())?;
        let lists = bounded(self.lists(&chunks))?;
        Ok(FileLayout { drives: bounded(self.drives)?, lists, parts, end: self.layout.end })
    }

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
            None => self.buckets.place(at, offset, len)?,
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
