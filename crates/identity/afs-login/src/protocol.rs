//! Constants and transcripts of the exchanges, common to both ends.

use afs_wire::ids::CellName;
use afs_wire::login::{KeyBlob, Wish};
use opaque_ke::Identifiers;

use crate::crypto::{Share, Transcript};
use crate::user::UserName;

/// Labels that separate one kind of exchange from another.
pub(crate) struct Kind {
    /// Prefix of its transcript.
    label: &'static str,
    /// Purpose of its key, and associated data of the sealed grant.
    pub(crate) purpose: &'static str,
}

pub(crate) const PASSPHRASE: Kind =
    Kind { label: "andrew login passphrase 1", purpose: "andrew login grant passphrase 1" };
pub(crate) const SSH: Kind = Kind { label: "andrew login ssh 1", purpose: "andrew login grant ssh 1" };
pub(crate) const RENEW: Kind = Kind { label: "andrew login renew 1", purpose: "andrew login grant renew 1" };
pub(crate) const GROUPS: Kind =
    Kind { label: "andrew login groups 1", purpose: "andrew login grant groups 1" };

impl Kind {
    /// Begins the transcript of an exchange of this kind.
    pub(crate) fn transcript(&self, cell: &CellName, user: &UserName, wish: &Wish) -> Transcript {
        Transcript::begin(self.label, cell, user, wish)
    }
}

/// Identifiers of the two ends in OPAQUE.
pub(crate) fn identifiers<'a>(user: &'a UserName, cell: &'a CellName) -> Identifiers<'a> {
    Identifiers { client: Some(user.as_str().as_bytes()), server: Some(cell.as_str().as_bytes()) }
}

/// Further items in the transcript of a login with an SSH key; the user's key and the host key sign all of it.
pub(crate) struct SshExchange<'a> {
    pub(crate) key: &'a KeyBlob,
    pub(crate) client: Share,
    pub(crate) server: Share,
    pub(crate) host_key: [u8; 32],
}

impl SshExchange<'_> {
    pub(crate) fn transcript(&self, cell: &CellName, user: &UserName, wish: &Wish) -> Transcript {
        let begun = SSH.transcript(cell, user, wish);
        begun.with(self.key).with(&self.client.0).with(&self.server.0).with(&self.host_key)
    }
}
