//! What the calls are made of.

use crate::ids::UnixSeconds;
use crate::xdr::{BoundedVec, ByteString, Decode, DecodeError, Encode, Reader};

/// A user's name: lower-case, without a cell.
pub type UserText = ByteString<63>;
/// A message of the passphrase protocol (OPAQUE).
pub type Message = ByteString<1024>;
/// A login under way, sealed by the server for itself. Means nothing to the client.
pub type Attempt = ByteString<1024>;
/// A token and what belongs to it, sealed with the key that only both ends know.
pub type SealedGrant = ByteString<32768>;
/// The right to renew a token, sealed by the server for itself.
pub type Renewal = ByteString<512>;
/// An SSH public key in its own wire form (RFC 4253 section 6.6).
pub type KeyBlob = ByteString<1024>;
/// An SSH signature in the form of `PROTOCOL.sshsig`, without its armour.
pub type SshSignature = ByteString<4096>;
/// What a key is called by its owner.
pub type Comment = ByteString<128>;
/// Most SSH keys of one user.
pub const KEYS_MAX: usize = 32;

/// Bytes of a fixed number, as they are: `opaque[N]` with `N` a multiple of four.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Fixed<const N: usize>(pub [u8; N]);

impl<const N: usize> Encode for Fixed<N> {
    fn encode(&self, out: &mut Vec<u8>) {
        const { assert!(N.is_multiple_of(4)) };
        out.extend_from_slice(&self.0);
    }
}

impl<const N: usize> Decode for Fixed<N> {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(|bytes| Self(*bytes))
    }
}

xdr_struct! {
    /// What the client would like of its token. The server may give less.
    pub struct Wish {
        /// Seconds until the token ends; 0 leaves it to the server.
        pub lifetime: u32,
        /// How connections made with it are protected: 0 clear, 1 auth, 2 crypt.
        pub level: i32,
    }
}

xdr_struct! {
    /// An SSH key that its user may log in with.
    pub struct SshKeyInfo {
        /// The public key.
        pub key: KeyBlob,
        /// What its owner calls it.
        pub comment: Comment,
        /// When it was added.
        pub added: UnixSeconds,
    }
}

xdr_struct! {
    /// How a user may log in.
    pub struct Ways {
        /// When the passphrase was set; 0 when there is none.
        pub passphrase: UnixSeconds,
        /// The SSH keys.
        pub keys: BoundedVec<SshKeyInfo, KEYS_MAX>,
    }
}
