//! What a client holds: a ticket and its session key.

use std::fmt;
use std::sync::Arc;

use afs_rpc::{EnvRef, Level, SecuritySource, UnixTime};
use sha2::{Digest, Sha256};

use super::client::Source;
use super::handshake::TICKET_LEN;
use super::{RxkadError, SessionKey, TicketFormat};

/// An rxkad token. Whoever sees the ticket pass knows nothing; whoever has the session key is the user.
#[derive(Clone, PartialEq, Eq)]
pub struct RxkadToken {
    format: TicketFormat,
    ticket: Arc<[u8]>,
    key: SessionKey,
    expires: Option<UnixTime>,
    level: Level,
}

impl RxkadToken {
    /// From a ticket in one of the formats, at [`Level::Crypt`]. `expires` is the ticket's end; `None` is never.
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

    /// From what a KDC gave: the whole ticket for `afs/cell` or `afs` in DER, and its session key with the key's
    /// type, at [`Level::Crypt`].
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

    /// How packets are protected.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// When it ends; `None` is never.
    #[must_use]
    pub fn expires(&self) -> Option<UnixTime> {
        self.expires
    }

    /// How the ticket is written.
    #[must_use]
    pub fn format(&self) -> TicketFormat {
        self.format
    }

    /// The ticket as it travels in clear.
    #[must_use]
    pub fn ticket(&self) -> &[u8] {
        &self.ticket
    }

    /// The session key.
    #[must_use]
    pub fn key(&self) -> &SessionKey {
        &self.key
    }

    /// What makes connections with this token.
    #[must_use]
    pub fn source(&self, env: EnvRef) -> Arc<dyn SecuritySource> {
        Arc::new(Source::new(self.clone(), env))
    }

    /// A name that another token has only if ticket, key and level are the same. It must depend on the key: the ticket
    /// is no secret, and whoever repeats it with a made-up key must not get the connections of its owner. The key is
    /// no easier to find from it than from one packet.
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
