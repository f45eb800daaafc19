//! Lists of chunks as the file server told them, each with the hash tree that its drive follows.

use std::sync::Arc;

use afs_datapath::capability::{ChunkList, Generation, ListBinding, Listed, ListedChunk};
use afs_drive::{ChunkId, ChunkRef};
use afs_wire::fs::{FileLayout, LIST_ADDRESSED, LIST_COMMANDED, ListedPart};
use afs_wire::xdr::{Decode, Fixed};

/// All chunks of a layout at one drive, and their binding.
pub(super) struct List {
    tree: ChunkList,
    binding: ListBinding,
}

/// An element of a list.
#[derive(Clone)]
pub(super) struct Element {
    list: Arc<List>,
    place: u32,
    start: u32,
    end: u32,
}

/// By what the chunks at a drive are read.
pub(super) enum AtDrive {
    Listed(Arc<List>),
    Commanded,
    Addressed,
}

impl Element {
    /// The element of a list at a place, of which a range may be read.
    pub fn new(list: &Arc<List>, place: u32, (start, end): (u32, u32)) -> Self {
        Self { list: list.clone(), place, start, end }
    }

    /// What shows the drive that the chunk is in its list.
    pub fn shown(&self) -> Listed {
        let Self { list, place, start, end } = self;
        let (count, path) = (list.tree.count(), list.tree.path(*place));
        Listed { start: *start, end: *end, place: *place, count, path, binding: list.binding }
    }

    /// Of its binding.
    pub fn generation(&self) -> Generation {
        self.list.binding.terms.generation
    }
}

/// The lists of a reply, one for each of its drives; `None` if they contradict its parts.
pub(super) fn lists(reply: &FileLayout) -> Option<Vec<AtDrive>> {
    if reply.lists.len() != reply.drives.len() {
        return None;
    }
    let mut chunks = vec![Vec::new(); reply.drives.len()];
    for part in reply.parts.parts() {
        for copy in &part.copies {
            chunks.get_mut(copy.drive as usize)?.push(element(part, copy.id)?);
        }
    }
    let lists = reply.lists.iter().zip(&chunks);
    lists.map(|(told, chunks)| at_drive(told, chunks)).collect()
}

fn at_drive(told: &Fixed<40>, chunks: &[ListedChunk]) -> Option<AtDrive> {
    match *told {
        LIST_COMMANDED => Some(AtDrive::Commanded),
        LIST_ADDRESSED => Some(AtDrive::Addressed),
        _ => {
            let (tree, binding) = (ChunkList::new(chunks)?, ListBinding::from_bytes(&told.0).ok()?);
            Some(AtDrive::Listed(Arc::new(List { tree, binding })))
        }
    }
}

/// The chunk of a part, by its id at a drive.
pub(super) fn chunk(part: &ListedPart, id: u128) -> ChunkRef {
    ChunkRef { id: ChunkId::from_bytes(id.to_be_bytes()), len: part.chunk.length, crc: part.chunk.crc }
}

fn element(part: &ListedPart, id: u128) -> Option<ListedChunk> {
    let start = part.chunk.offset;
    Some(ListedChunk { chunk: chunk(part, id), start, end: start.checked_add(part.length)? })
}
