//! List of chunks of a file at one drive, bound to a group as a whole: a hash tree, of which each read brings one path.
//!
//! The tree is that of RFC 9162, section 2.1, over SHA-256. The drive stores no list, and the file server sends it none: the drive follows the path from the chunk that is
//! asked for to the root, which is what the file server has bound.

use std::fmt;
use std::ops::Range;

use afs_drive::ChunkRef;
use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::proof::mac;
use super::{DriveKey, Generation, GroupTag, Refusal, StoreNumber, Terms};

/// Most chunks of a list.
pub const LIST_MAX: u32 = 1 << (PATH_MAX as u32);
/// Most hashes of a path.
const PATH_MAX: usize = 12;

/// Bytes of the MAC of a binding.
const MAC_LEN: usize = 16;

/// A hash of the tree.
pub type Node = [u8; 32];

/// What the binding of a list says of all its chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListTerms {
    /// The store of the drive that has them.
    pub store: StoreNumber,
    /// The file of which they are parts. A revocation for it ends the binding.
    pub file: GroupTag,
    /// As [`Terms::generation`].
    pub generation: Generation,
}

/// Terms of a list, and a short MAC under the drive's key over them, its root and its length, which binds all to a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ListBinding {
    /// What it says.
    pub terms: ListTerms,
    /// The first bytes of HMAC-SHA-256.
    pub mac: [u8; MAC_LEN],
}

/// An element of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedChunk {
    /// The chunk.
    pub chunk: ChunkRef,
    /// First byte of it that may be read.
    pub start: u32,
    /// End of what may be read.
    pub end: u32,
}

/// The hash tree of a list: about 64 bytes for each chunk.
#[derive(Clone)]
pub struct ChunkList {
    /// From the chunks to the root. Not empty, and the last one has one node.
    levels: Vec<Vec<Node>>,
}

/// What shows that a chunk is in a list that is bound.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listed {
    /// First byte of the chunk that may be read.
    pub start: u32,
    /// End of what may be read.
    pub end: u32,
    /// The chunk's place in the list.
    pub place: u32,
    /// How many chunks the list has, at most [`LIST_MAX`].
    pub count: u32,
    /// The nodes beside those on the way to the root, at most 12.
    pub path: Vec<Node>,
    /// Binding of the list.
    pub binding: ListBinding,
}

impl ListTerms {
    const LEN: usize = 4 + GroupTag::LEN + 8;
}

impl ListBinding {
    /// Bytes on the wire.
    pub const WIRE_LEN: usize = ListTerms::LEN + MAC_LEN;
}

impl ChunkList {
    /// The tree of a list. `None` for an empty one, and for more than [`LIST_MAX`] chunks.
    #[must_use]
    pub fn new(chunks: &[ListedChunk]) -> Option<Self> {
        if chunks.is_empty() || chunks.len() > LIST_MAX as usize {
            return None;
        }
        let mut level: Vec<Node> = chunks.iter().map(ListedChunk::hash).collect();
        let mut levels = Vec::new();
        while level.len() > 1 {
            let above = level.chunks(2).map(|pair| match pair {
                [left, right] => parent(left, right),
                // The last one of an odd number stands for itself.
                alone => alone.first().copied().unwrap_or_default(),
            });
            let above = above.collect();
            levels.push(std::mem::replace(&mut level, above));
        }
        levels.push(level);
        Some(Self { levels })
    }

    /// How many chunks it has.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.levels.first().map_or(0, |leaves| leaves.len() as u32)
    }

    fn root(&self) -> Node {
        self.levels.last().and_then(|root| root.first().copied()).unwrap_or_default()
    }

    /// The nodes beside those on the way from a place to the root.
    #[must_use]
    pub fn path(&self, place: u32) -> Vec<Node> {
        let beside = |(height, level): (usize, &Vec<Node>)| {
            let beside = (place as usize >> height) ^ 1;
            level.get(beside).copied()
        };
        self.levels.iter().enumerate().filter_map(beside).collect()
    }
}

impl DriveKey {
    /// Binds a list to a group.
    #[must_use]
    pub fn bind_list(&self, group: GroupTag, list: &ChunkList, terms: ListTerms) -> ListBinding {
        self.bind_root(group, (list.count(), list.root()), terms)
    }

    fn bind_root(&self, group: GroupTag, (count, root): (u32, Node), terms: ListTerms) -> ListBinding {
        let (said, count) = (terms.to_bytes(), count.to_be_bytes());
        let digest = mac(self.bytes(), &[PURPOSE, &group.0, &said, &count, &root]);
        ListBinding { terms, mac: std::array::from_fn(|at| digest[at]) }
    }

    /// Whether a chunk is in a list that is bound to a group, and a range of it is among what may be read. Whether the binding was revoked
    /// is to be checked beside.
    ///
    /// # Errors
    /// [`Refusal::OtherObject`] for a MAC that is not of these terms, this list, this group and this key; [`Refusal::OutOfRange`].
    pub fn check_listed(
        &self,
        group: GroupTag,
        chunk: ChunkRef,
        listed: &Listed,
        range: &Range<u32>,
    ) -> Result<(), Refusal> {
        let Listed { start, end, binding, .. } = *listed;
        let root = listed.root(chunk).ok_or(Refusal::OtherObject)?;
        let right = self.bind_root(group, (listed.count, root), binding.terms);
        if !bool::from(right.mac.ct_eq(&binding.mac)) {
            return Err(Refusal::OtherObject);
        }
        let is_inside = start <= range.start && range.start <= range.end && range.end <= end;
        if is_inside { Ok(()) } else { Err(Refusal::OutOfRange) }
    }
}

impl ListedChunk {
    fn hash(&self) -> Node {
        let range = [self.start.to_be_bytes(), self.end.to_be_bytes()].concat();
        sha256(&[&[0], &self.chunk.to_bytes(), &range])
    }
}

impl Listed {
    /// The terms on which the chunk is read.
    #[must_use]
    pub fn terms(&self) -> Terms {
        let ListTerms { store, file, generation } = self.binding.terms;
        Terms { store, start: self.start, end: self.end, file, generation }
    }

    /// The root of the tree in which the path leads there from the chunk; `None` if it leads to none.
    fn root(&self, chunk: ChunkRef) -> Option<Node> {
        let (mut place, mut last) = (self.place, self.count.checked_sub(1)?);
        if place > last {
            return None;
        }
        let mut node = ListedChunk { chunk, start: self.start, end: self.end }.hash();
        let mut path = self.path.iter();
        while last > 0 {
            if place % 2 == 1 {
                node = parent(path.next()?, &node);
            } else if place < last {
                node = parent(&node, path.next()?);
            }
            (place, last) = (place / 2, last / 2);
        }
        path.next().is_none().then_some(node)
    }
}

/// Distinguishes the binding of a list from other MACs.
const PURPOSE: &[u8; 16] = b"afs-data-list--1";

fn parent(left: &Node, right: &Node) -> Node {
    sha256(&[&[1], left, right])
}

fn sha256(parts: &[&[u8]]) -> Node {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

impl fmt::Debug for ListBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListBinding").field("terms", &self.terms).finish_non_exhaustive()
    }
}

impl Encode for ListTerms {
    fn encode(&self, out: &mut Vec<u8>) {
        self.store.encode(out);
        self.file.encode(out);
        self.generation.encode(out);
    }
}

impl Decode for ListTerms {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { store: Decode::decode(r)?, file: Decode::decode(r)?, generation: Decode::decode(r)? })
    }
}

impl Encode for ListBinding {
    fn encode(&self, out: &mut Vec<u8>) {
        self.terms.encode(out);
        out.extend_from_slice(&self.mac);
    }
}

impl Decode for ListBinding {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { terms: Decode::decode(r)?, mac: *r.array()? })
    }
}

impl Encode for Listed {
    fn encode(&self, out: &mut Vec<u8>) {
        [self.start, self.end, self.place, self.count].iter().for_each(|word| word.encode(out));
        (self.path.len() as u32).encode(out);
        self.path.iter().for_each(|node| out.extend_from_slice(node));
        self.binding.encode(out);
    }
}

impl Decode for Listed {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (start, end, place, count) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
        let nodes = r.u32()?;
        if nodes as usize > PATH_MAX || count > LIST_MAX {
            return Err(DecodeError::BadValue { what: "number of nodes or of listed chunks", value: nodes });
        }
        let path = (0..nodes).map(|_| r.array().copied()).collect::<Result<_, _>>()?;
        Ok(Self { start, end, place, count, path, binding: Decode::decode(r)? })
    }
}

#[cfg(test)]
mod tests {
    use afs_drive::ChunkId;

    use super::*;
    use crate::capability::{DriveId, KeyEpoch};

    const GROUP: GroupTag = GroupTag([1; 12]);

    fn key(secret: u8) -> DriveKey {
        DriveKey::new(DriveId(1), KeyEpoch(1), [secret; 32])
    }

    fn chunk(n: u32) -> ListedChunk {
        let chunk = ChunkRef { id: ChunkId::from_parts(1, u64::from(n) << 12), len: 1 << 20, crc: n };
        ListedChunk { chunk, start: 0, end: 1 << 20 }
    }

    fn terms() -> ListTerms {
        ListTerms { store: StoreNumber(3), file: GroupTag([2; 12]), generation: Generation(7) }
    }

    fn list(count: u32) -> (ChunkList, ListBinding) {
        let chunks: Vec<_> = (0..count).map(chunk).collect();
        let list = ChunkList::new(&chunks).unwrap();
        let binding = key(1).bind_list(GROUP, &list, terms());
        (list, binding)
    }

    fn listed((list, binding): &(ChunkList, ListBinding), place: u32) -> Listed {
        let ListedChunk { start, end, .. } = chunk(place);
        Listed { start, end, place, count: list.count(), path: list.path(place), binding: *binding }
    }

    fn check(n: u32, listed: &Listed) -> Result<(), Refusal> {
        key(1).check_listed(GROUP, chunk(n).chunk, listed, &(0..1 << 20))
    }

    #[test]
    fn each_chunk_of_a_list_of_any_length_is_permitted_at_its_place_alone() {
        for count in (1..=33).chain([1023, 1024, 1025, LIST_MAX]) {
            let list = list(count);
            let places = (0..count).filter(|n| count < 40 || n % 97 == 0 || n + 3 > count);
            for place in places {
                let right = listed(&list, place);
                assert!(right.path.len() <= PATH_MAX);
                assert_eq!(Listed::from_bytes(&right.to_bytes()), Ok(right.clone()));
                assert_eq!(check(place, &right), Ok(()), "{place} of {count}");
                for other in
                    [place ^ 1, place + 1, place.wrapping_sub(1), count].iter().filter(|n| **n != place)
                {
                    let elsewhere = Listed { place: *other, ..right.clone() };
                    assert_eq!(
                        check(place, &elsewhere),
                        Err(Refusal::OtherObject),
                        "{place}, {other} of {count}"
                    );
                    assert_eq!(
                        check(*other, &right),
                        Err(Refusal::OtherObject),
                        "{place}, {other} of {count}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_in_no_list_that_is_bound_is_refused() {
        let list = list(100);
        let right = listed(&list, 41);
        let refused = |what: &str, change: &dyn Fn(&mut Listed)| {
            let mut wrong = right.clone();
            change(&mut wrong);
            assert_eq!(check(41, &wrong), Err(Refusal::OtherObject), "{what}");
        };
        refused("more of the chunk", &|listed| listed.end += 1);
        refused("less of it", &|listed| listed.start += 1);
        refused("a longer list", &|listed| listed.count += 1);
        refused("no list", &|listed| listed.count = 0);
        refused("a shorter path", &|listed| _ = listed.path.pop());
        refused("a longer path", &|listed| listed.path.push([0; 32]));
        refused("another node", &|listed| listed.path[3][0] ^= 1);
        refused("another file", &|listed| listed.binding.terms.file.0[0] ^= 1);
        refused("another store", &|listed| listed.binding.terms.store.0 += 1);
        refused("a later generation", &|listed| listed.binding.terms.generation.0 += 1);
        refused("another MAC", &|listed| listed.binding.mac[0] ^= 1);
        let chunk = chunk(41).chunk;
        assert_eq!(key(2).check_listed(GROUP, chunk, &right, &(0..5)), Err(Refusal::OtherObject));
        assert_eq!(key(1).check_listed(GroupTag([9; 12]), chunk, &right, &(0..5)), Err(Refusal::OtherObject));
        let beyond = 0..(1 << 20) + 1;
        assert_eq!(key(1).check_listed(GROUP, chunk, &right, &beyond), Err(Refusal::OutOfRange));
    }

    #[test]
    fn a_node_is_no_chunk_and_a_binding_of_one_list_is_none_of_another() {
        // An inner node in the place of a chunk: a path that begins a level higher leads nowhere.
        let list = list(4);
        let mut higher = listed(&list, 0);
        higher.path.remove(0);
        higher.count = 2;
        assert_eq!(check(0, &higher), Err(Refusal::OtherObject));
        // A list of one chunk, and the MAC of another one.
        let alone = listed(&self::list(1), 0);
        let wrong = Listed { binding: ListBinding { mac: list.1.mac, ..alone.binding }, ..alone.clone() };
        assert_eq!((check(0, &alone), check(0, &wrong)), (Ok(()), Err(Refusal::OtherObject)));
    }

    #[test]
    fn lists_are_bounded() {
        let chunks: Vec<_> = (0..=LIST_MAX).map(chunk).collect();
        assert!(ChunkList::new(&chunks).is_none() && ChunkList::new(&[]).is_none());
        let right = listed(&list(LIST_MAX), 0);
        assert_eq!(right.path.len(), PATH_MAX);
        let longer = Listed { path: vec![[0; 32]; PATH_MAX + 1], ..right.clone() };
        assert!(Listed::from_bytes(&longer.to_bytes()).is_err());
        assert!(Listed::from_bytes(&Listed { count: LIST_MAX + 1, ..right }.to_bytes()).is_err());
    }
}
