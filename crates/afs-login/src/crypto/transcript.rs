//! What both ends must have seen alike.

use afs_wire::ids::CellName;
use afs_wire::login::{VERSION, Wish};
use afs_wire::xdr::Encode;
use sha2::{Digest as _, Sha512};

use crate::user::UserName;

/// A hash over everything that was said.
pub(crate) type Digest = [u8; 64];

/// Everything said so far: a label, then items that each carry their length.
pub(crate) struct Transcript(Vec<u8>);

impl Transcript {
    /// Begins with what every login has: which protocol, which cell, who, and what he wants.
    pub(crate) fn begin(label: &'static str, cell: &CellName, user: &UserName, wish: &Wish) -> Self {
        let mut bytes = Vec::with_capacity(512);
        VERSION.encode(&mut bytes);
        wish.encode(&mut bytes);
        Self(bytes).with(label.as_bytes()).with(cell.as_str().as_bytes()).with(user.as_str().as_bytes())
    }

    /// One more item.
    pub(crate) fn with(mut self, item: &[u8]) -> Self {
        (item.len() as u64).encode(&mut self.0);
        self.0.extend_from_slice(item);
        self
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its hash (SHA-512).
    pub(crate) fn digest(&self) -> Digest {
        Sha512::digest(&self.0).into()
    }
}
