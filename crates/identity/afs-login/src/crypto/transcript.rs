//! Transcript of an exchange, which both ends must have in common.

use afs_wire::ids::CellName;
use afs_wire::login::{VERSION, Wish};
use afs_wire::xdr::Encode;
use sha2::{Digest as _, Sha512};

use crate::user::UserName;

/// Hash of a transcript.
pub(crate) type Digest = [u8; 64];

/// The messages so far: a label, then items that each carry their length.
pub(crate) struct Transcript(Vec<u8>);

impl Transcript {
    /// Begins with the common part of every login: the protocol, the cell, the user, and the requested token.
    pub(crate) fn begin(label: &'static str, cell: &CellName, user: &UserName, wish: &Wish) -> Self {
        let mut bytes = Vec::with_capacity(512);
        VERSION.encode(&mut bytes);
        wish.encode(&mut bytes);
        Self(bytes).with(label.as_bytes()).with(cell.as_str().as_bytes()).with(user.as_str().as_bytes())
    }

    /// Appends an item.
    pub(crate) fn with(mut self, item: &[u8]) -> Self {
        (item.len() as u64).encode(&mut self.0);
        self.0.extend_from_slice(item);
        self
    }

    /// The encoded transcript.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Its hash (SHA-512).
    pub(crate) fn digest(&self) -> Digest {
        Sha512::digest(&self.0).into()
    }
}
