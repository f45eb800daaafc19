//! Ticket, its session key, and its times of validity.

use crate::principal::Principal;
use afs_auth::Secret;
use afs_rpc::UnixTime;

/// The session key that a ticket gives to a user and a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKey {
    /// Encryption type of RFC 3961.
    pub enctype: i32,
    /// The key itself.
    pub secret: Secret,
}

/// A ticket with its session key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The user that the ticket authenticates.
    pub client: Principal,
    /// The service that can decrypt the ticket.
    pub server: Principal,
    /// The session key.
    pub key: SessionKey,
    /// Start of its validity.
    pub starts: UnixTime,
    /// End of its validity.
    pub ends: UnixTime,
    /// The whole Ticket of RFC 4120, in DER. Opaque to the client.
    pub ticket: Vec<u8>,
}

impl Credential {
    /// Longest ticket that is read, in bytes. Directory services that list a user's groups issue tickets of up to 64
    /// KiB.
    pub const TICKET_MAX: usize = 128 * 1024;

    /// Whether it is valid for some time yet: a ticket about to expire would be refused when it arrives.
    pub fn is_good_at(&self, now: UnixTime) -> bool {
        self.ends.secs > now.secs.saturating_add(REMAINDER_SECS)
    }
}

/// Shortest remaining lifetime worth using, in seconds.
const REMAINDER_SECS: u64 = 30;
