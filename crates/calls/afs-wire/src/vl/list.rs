//! Calls that list entries.

use super::{Entry, NameText, OldEntry, SERVICE};
use crate::ids::{PartitionNumber, VolumeId};
use crate::xdr::{BoundedVec, Decode, DecodeError, Encode, Reader};
use std::net::Ipv4Addr;

/// Most entries of one reply that a client accepts. The protocol has no bound; pages of [`ListAttributesN2`] hold at
/// most [`PAGE_MAX`].
pub const ENTRIES_MAX: usize = 1 << 20;
/// Most entries of one page of [`ListAttributesN2`].
pub const PAGE_MAX: usize = 500;

/// Filter of entries: `VldbListByAttributes`. With a volume number the other criteria are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Entries with a site on this server.
    pub server: Option<Ipv4Addr>,
    /// Entries with a site on this partition.
    pub partition: Option<PartitionNumber>,
    /// The entry with this volume.
    pub volume: Option<VolumeId>,
    /// Entries with one of these flags.
    pub flag: Option<u32>,
}

const SERVER: u32 = 0x1;
const PARTITION: u32 = 0x2;
const VOLUME: u32 = 0x8;
const FLAG: u32 = 0x10;

impl Encode for Attributes {
    fn encode(&self, out: &mut Vec<u8>) {
        let bits = [
            (self.server.is_some(), SERVER),
            (self.partition.is_some(), PARTITION),
            (self.volume.is_some(), VOLUME),
            (self.flag.is_some(), FLAG),
        ];
        bits.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum::<u32>().encode(out);
        self.server.unwrap_or(Ipv4Addr::UNSPECIFIED).encode(out);
        self.partition.unwrap_or_default().encode(out);
        0u32.encode(out);
        self.volume.unwrap_or_default().encode(out);
        self.flag.unwrap_or_default().encode(out);
    }
}

impl Decode for Attributes {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let [mask, server, partition, _spare, volume, flag] = <[u32; 6]>::decode(r)?;
        Ok(Self {
            server: (mask & SERVER != 0).then_some(server.into()),
            partition: (mask & PARTITION != 0).then_some(PartitionNumber(partition as i32)),
            volume: (mask & VOLUME != 0).then_some(VolumeId(volume)),
            flag: (mask & FLAG != 0).then_some(flag),
        })
    }
}

/// A chain of optional elements: each is preceded by 1, and 0 ends the chain. At most [`ENTRIES_MAX`] elements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain<T>(pub Vec<T>);

impl<T: Encode> Encode for Chain<T> {
    fn encode(&self, out: &mut Vec<u8>) {
        for element in self.0.iter().take(ENTRIES_MAX) {
            true.encode(out);
            element.encode(out);
        }
        false.encode(out);
    }
}

impl<T: Decode> Decode for Chain<T> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut elements = Vec::new();
        while bool::decode(r)? {
            if elements.len() == ENTRIES_MAX {
                return Err(DecodeError::TooLong { limit: ENTRIES_MAX, got: ENTRIES_MAX + 1 });
            }
            elements.push(T::decode(r)?);
        }
        Ok(Self(elements))
    }
}

/// Entries of one reply.
pub type Entries = BoundedVec<Entry, ENTRIES_MAX>;
/// Entries of one reply, in the old form.
pub type OldEntries = BoundedVec<OldEntry, ENTRIES_MAX>;
/// Entries as a chain.
pub type EntryChain = Chain<Entry>;
/// Entries as a chain, in the old form.
pub type OldEntryChain = Chain<OldEntry>;

calls! {
    service SERVICE;

    /// Reads the entry after an index, in the old form.
    510 "ListEntry" ListEntry {
        /// 0, or the previous reply's `next`.
        previous: i32,
    } -> ListEntryReply {
        /// Approximate number of entries that follow.
        remaining: i32,
        /// The next request's `previous`; 0 at the end.
        next: i32,
        entry: OldEntry,
    };

    /// Lists all matching entries, in the old form.
    511 "ListAttributes" ListAttributes { attributes: Attributes }
        -> ListAttributesReply { count: i32, entries: OldEntries };

    /// Lists all matching entries as a chain, in the old form.
    512 "LinkedList" LinkedList { attributes: Attributes }
        -> LinkedListReply { count: i32, entries: OldEntryChain };

    /// Reads the entry after an index.
    521 "ListEntryN" ListEntryN {
        /// 0, or the previous reply's `next`.
        previous: i32,
    } -> ListEntryNReply {
        /// Approximate number of entries that follow.
        remaining: i32,
        /// The next request's `previous`; 0 at the end.
        next: i32,
        entry: Entry,
    };

    /// Lists all matching entries.
    522 "ListAttributesN" ListAttributesN { attributes: Attributes }
        -> ListAttributesNReply { count: i32, entries: Entries };

    /// Lists all matching entries as a chain.
    523 "LinkedListN" LinkedListN { attributes: Attributes }
        -> LinkedListNReply { count: i32, entries: EntryChain };

    /// Lists matching entries page by page.
    534 "ListAttributesN2" ListAttributesN2 {
        attributes: Attributes,
        /// A basic regular expression for the whole name; empty or `.*` for all. Only administrators may pass one.
        name: NameText,
        /// 0, or the previous reply's `next`.
        start: i32,
    } -> ListAttributesN2Reply {
        count: i32,
        entries: Entries,
        /// The next request's `start`; **-1** at the end.
        next: i32,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_six_words() {
        let attributes = Attributes { flag: Some(0x1f0), ..Attributes::default() };
        let wire = attributes.to_bytes();
        assert_eq!(wire.len(), 24);
        assert_eq!(Attributes::from_bytes(&wire), Ok(attributes));
    }

    #[test]
    fn chains_end_with_a_zero() {
        let chain = Chain(vec![7u32, 8]);
        assert_eq!(chain.to_bytes(), [0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0]);
        assert_eq!(Chain::from_bytes(&chain.to_bytes()), Ok(chain));
        assert!(Chain::<u32>::from_bytes(&[0, 0, 0, 1, 0, 0, 0, 7]).is_err());
    }
}
