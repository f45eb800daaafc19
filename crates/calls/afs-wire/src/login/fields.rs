//! Fields and structures of the login calls.

use crate::ids::UnixSeconds;
use crate::xdr::{BoundedVec, ByteString};

pub use crate::xdr::Fixed;

/// A user's name: lower-case, without a cell.
pub type UserText = ByteString<63>;
/// A message of the passphrase protocol (OPAQUE).
pub type Message = ByteString<1024>;
/// State of a login in progress, sealed by the server for itself. Opaque to the client.
pub type Attempt = ByteString<1024>;
/// A token with its properties, sealed with a key shared by both ends.
pub type SealedGrant = ByteString<32768>;
/// The right to renew a token, sealed by the server for itself.
pub type Renewal = ByteString<512>;
/// An SSH public key in its own wire form (RFC 4253 section 6.6).
pub type KeyBlob = ByteString<1024>;
/// An SSH signature in the form of `PROTOCOL.sshsig`, without its armour.
pub type SshSignature = ByteString<4096>;
/// The owner's name for a key.
pub type Comment = ByteString<128>;
/// A group's name.
pub type GroupText = ByteString<64>;
/// Most groups in one change.
pub const GROUPS_MAX: usize = 32;
/// Groups that a change names.
pub type GroupTexts = BoundedVec<GroupText, GROUPS_MAX>;
/// An address: 4 bytes of IPv4, or 16 of IPv6.
pub type HostAddress = ByteString<16>;
/// Most users whose tokens one call revokes.
pub const REVOKED_MAX: usize = 1024;
/// Most SSH keys of one user.
pub const KEYS_MAX: usize = 32;

xdr_struct! {
    /// The client's requested properties of its token. The server may grant less.
    pub struct Wish {
        /// Seconds until the token expires; 0 leaves it to the server.
        pub lifetime: u32,
        /// Protection of its connections: 0 clear, 1 auth, 2 crypt.
        pub level: i32,
    }
}

xdr_struct! {
    /// An SSH key of a user.
    pub struct SshKeyInfo {
        /// The public key.
        pub key: KeyBlob,
        /// The owner's name for it.
        pub comment: Comment,
        /// When it was added.
        pub added: UnixSeconds,
    }
}

xdr_struct! {
    /// A user's ways to log in.
    pub struct Ways {
        /// When the passphrase was set; 0 when there is none.
        pub passphrase: UnixSeconds,
        /// The SSH keys.
        pub keys: BoundedVec<SshKeyInfo, KEYS_MAX>,
    }
}
