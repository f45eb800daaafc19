//! rxkad token of a client: a ticket and its session key.

use std::fmt;
use std::sync::Arc;

use afs_rpc::{EnvRef, Level, SecuritySource, UnixTime};
use sha2::{Digest, Sha256};

use super::client::Source;
use super::handshake::TICKET_LEN;
use super::{RxkadError, SessionKey, TicketFormat};

/// An rxkad token. The ticket alone is useless to an eavesdropper; the holder of the session key is the user.
#[derive(Clone, PartialEq, Eq)]
pub struct RxkadToken {
    format: TicketFormat,
    ticket: Arc<[u8]>,
    key: SessionKey,
    expires: Option<UnixTime>,
    level: Level,
}

impl RxkadToken {
    /// A token from a ticket in one of the formats, at [`Level::Crypt`]. `expires` is the ticket's expiry; `None` is
    /// never.
    ///
    /// # Errors
    /// [`RxkadError::TicketLength`] for less than 32 and more than 12000 bytes.
    pub fn new(
        format: TicketFormat,
        ticket: &[u8],
        key: SessionKey,
        expires: Option<UnixTime>,
    ) -> Result<Self, RxkadError> {
        if !TICKET_LEN.contains(&ticket.len()) {
            return Err(RxkadError::TicketLength);
        }
        Ok(Self { format, ticket: ticket.into(), key, expires, level: Level::Crypt })
    }

    /// A token from a KDC's reply: the whole ticket for `afs/cell` or `afs` in DER, and its session key with the
    /// key's type, at [`Level::Crypt`].
    ///
    /// # Errors
    /// As [`RxkadToken::new`]; [`RxkadError::BadKey`] for key types that rxkad cannot use.
    pub fn from_kerberos(
        ticket: &[u8],
        keytype: i32,
        key: &[u8],
        expires: Option<UnixTime>,
    ) -> Result<Self, RxkadError> {
        Self::new(TicketFormat::Ticket, ticket, SessionKey::from_kerberos(keytype, key)?, expires)
    }

    /// The same at another level: the client chooses.
    #[must_use]
    pub fn with_level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// Protection level of its connections.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// When it expires; `None` is never.
    #[must_use]
    pub fn expires(&self) -> Option<UnixTime> {
        self.expires
    }

    /// Format of the ticket.
    #[must_use]
    pub fn format(&self) -> TicketFormat {
        self.format
    }

    /// The ticket, as sent in the clear.
    #[must_use]
    pub fn ticket(&self) -> &[u8] {
        &self.ticket
    }

    /// The session key.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// A source of connections with this token.
    #[must_use]
    pub fn source(&self, env: EnvRef) -> Arc<dyn SecuritySource> {
        Arc::new(Source::new(self.clone(), env))
    }

    /// A name that two tokens share only if ticket, key and level are equal. It must depend on the key: the ticket is
    /// no secret, and an attacker who presents it with an invented key must not share the connections of its owner.
    /// The name reveals no more of the key than one packet does.
    pub(super) fn name(&self) -> String {
        let digest = Sha256::new()
            .chain_update([self.level.number()])
            .chain_update(self.key.expose())
            .chain_update(&self.ticket)
            .finalize();
        digest.iter().take(16).fold("rxkad:".to_owned(), |name, byte| format!("{name}{byte:02x}"))
    }
}

impl fmt::Debug for RxkadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RxkadToken");
        shown.field("level", &self.level).field("expires", &self.expires).finish_non_exhaustive()
    }
}
