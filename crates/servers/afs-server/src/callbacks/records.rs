//! The two record types of the promise table: objects and promises.

use afs_wire::ids::Fid;

use super::index::{Hashed, mix};
use super::slab::{Linked, NONE};
use crate::hosts::HostId;

/// A list that a promise is in, as index into [`Promise::links`].
#[derive(Clone, Copy)]
pub(super) enum List {
    /// All promises on one object.
    File,
    /// All promises to one host.
    Host,
    /// All promises that expire together.
    Bucket,
}

/// Neighbours in a list.
#[derive(Clone, Copy)]
pub(super) struct Links {
    pub(super) before: u32,
    pub(super) after: u32,
}

pub(super) const UNLINKED: Links = Links { before: NONE, after: NONE };

/// An object on which promises are held: 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct File {
    pub(super) fid: Fid,
    pub(super) first: u32,
    pub(super) promises: u32,
    /// Neighbours among the objects of the same volume.
    pub(super) volume: Links,
    next: u32,
}

impl File {
    pub(super) fn new(fid: Fid) -> Self {
        File { fid, first: NONE, promises: 0, volume: UNLINKED, next: NONE }
    }
}

impl Default for File {
    fn default() -> Self {
        File::new(Fid::default())
    }
}

impl Linked for File {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

impl Hashed for File {
    fn hash(&self, seed: u64) -> u32 {
        hash_fid(seed, self.fid)
    }
}

/// One promise to one host: 44 bytes.
#[derive(Clone, Copy)]
pub(super) struct Promise {
    pub(super) file: u32,
    pub(super) host: HostId,
    pub(super) links: [Links; 3],
    next: u32,
    /// Time of the last grant: seconds of the server's own clock, modulo 2^32.
    pub(super) given: u32,
    /// Break messages in flight.
    pub(super) breaking: u16,
    /// The bucket it expires in, modulo the ring.
    pub(super) bucket: u8,
    pub(super) state: State,
}

/// State of a promise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum State {
    /// The client may rely on it.
    Granted,
    /// A break was started and nothing has been granted since.
    Broken,
    /// A break could not be delivered; it is sent when the host is reachable again.
    Delayed,
}

impl Promise {
    pub(super) fn new(file: u32, host: HostId) -> Self {
        Promise {
            file,
            host,
            links: [UNLINKED; 3],
            next: NONE,
            given: 0,
            breaking: 0,
            bucket: 0,
            state: State::Granted,
        }
    }
}

impl Default for Promise {
    fn default() -> Self {
        Promise::new(NONE, HostId(NONE))
    }
}

impl Linked for Promise {
    fn next(&self) -> u32 {
        self.next
    }
    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

impl Hashed for Promise {
    fn hash(&self, seed: u64) -> u32 {
        mix(seed, self.file, self.host.0)
    }
}

pub(super) fn hash_fid(seed: u64, fid: Fid) -> u32 {
    mix(seed ^ u64::from(fid.unique.0).wrapping_mul(0x9e37_79b9_7f4a_7c15), fid.volume.0, fid.vnode.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_small() {
        assert_eq!(size_of::<File>(), 32);
        assert_eq!(size_of::<Promise>(), 44);
    }
}
