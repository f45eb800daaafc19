//! Ticket, session key and times of validity.

use crate::principal::Principal;
use afs_auth::Secret;
use afs_rpc::UnixTime;

/// The key that a user and a service share through a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionKey {
    /// Encryption type of RFC 3961.
    pub enctype: i32,
    /// The key itself.
    pub secret: Secret,
}

/// A ticket with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Whom it speaks for.
    pub client: Principal,
    /// The service that can read the ticket.
    pub server: Principal,
    /// What client and service share.
    pub key: SessionKey,
    /// When it begins to be good.
    pub starts: UnixTime,
    /// When it is not good any more.
    pub ends: UnixTime,
    /// The whole Ticket of RFC 4120, in DER. Opaque to the client.
    pub ticket: Vec<u8>,
}

impl Credential {
    /// Longest ticket that is read, in bytes. Those of directory services that list a user's groups come to 64 KiB.
    pub const TICKET_MAX: usize = 128 * 1024;

    /// Whether it will be good for some time yet: a ticket about to end would be refused when it arrives.
    pub fn is_good_at(&self, now: UnixTime) -> bool {
        self.ends.secs > now.secs.saturating_add(REMAINDER_SECS)
    }
}

/// Shortest remaining life that is worth using, in seconds.
const REMAINDER_SECS: u64 = 30;
