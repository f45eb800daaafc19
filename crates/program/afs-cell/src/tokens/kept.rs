//! Codec of a stored token: the token with the data needed to use and renew it.

use afs_auth::Token;
use afs_login::Grant;
use afs_rpc::UnixTime;
use afs_wire::ids::CellName;
use afs_wire::xdr::{BoundedVec, ByteString, Decode, DecodeError, Encode, Reader};
use std::fmt;
use std::net::Ipv4Addr;
use zeroize::Zeroizing;

/// A user's token of a cell, as it is stored in a file and handed to mounts.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptToken {
    /// The cell.
    pub cell: CellName,
    /// The user's name in the cell, for display.
    pub user: String,
    /// The token, and the key with which it is renewed.
    pub grant: Grant,
    /// Servers of the cell that may have a login service.
    pub servers: Vec<Ipv4Addr>,
    /// Port of their file service; the others follow from it.
    pub base_port: u16,
}

/// Error of decoding a stored token. It does not show the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a token, or one that another version wrote")]
pub struct BadToken;

/// First bytes of every token file: `andrew token` and the version of the format.
const MAGIC: &[u8; 16] = b"andrew token\0\0\0\x01";
/// Longest grant, in bytes: a token of 16 KiB and its additional data.
const GRANT_LEN_MAX: usize = 20 * 1024;
/// Most servers stored.
const SERVERS_MAX: usize = 32;
/// Longest encoded form, in bytes.
pub(super) const LEN_MAX: usize = 24 * 1024;

impl KeptToken {
    /// Encodes the token, including its key.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let grant = self.grant.encode();
        // Capacity for the whole token, so that growth leaves no copies in memory.
        let mut out = Zeroizing::new(Vec::with_capacity(grant.len() + 1024));
        out.extend_from_slice(MAGIC);
        ByteString::<256>::truncated(self.cell.as_str().as_bytes()).encode(&mut out);
        ByteString::<256>::truncated(self.user.as_bytes()).encode(&mut out);
        let servers = self.servers.iter().map(|server| server.to_bits());
        BoundedVec::<u32, SERVERS_MAX>::first_of(servers).encode(&mut out);
        u32::from(self.base_port).encode(&mut out);
        (grant.len() as u32).encode(&mut out);
        out.extend_from_slice(&grant);
        out
    }

    /// Decodes the bytes of [`KeptToken::encode`].
    ///
    /// # Errors
    /// [`BadToken`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BadToken> {
        let body = bytes.strip_prefix(MAGIC).filter(|_| bytes.len() <= LEN_MAX).ok_or(BadToken)?;
        let mut reader = Reader::new(body);
        let r = &mut reader;
        let cell = ByteString::<256>::decode(r)?;
        let cell = std::str::from_utf8(&cell).ok().and_then(|cell| CellName::new(cell).ok());
        let user = ByteString::<256>::decode(r)?.to_text();
        let servers = BoundedVec::<u32, SERVERS_MAX>::decode(r)?;
        let base_port = u16::try_from(r.u32()?).map_err(|_| BadToken)?;
        let len = r.count(GRANT_LEN_MAX)?;
        let grant = Grant::decode(r.raw(len)?).map_err(|_| BadToken)?;
        reader.finish()?;
        let servers = servers.into_iter().map(Ipv4Addr::from_bits).collect();
        Ok(Self { cell: cell.ok_or(BadToken)?, user, grant, servers, base_port })
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.grant.token
    }

    /// Whether it is of the same login as another one, and has the same groups: one renews the other.
    #[must_use]
    pub fn is_renewal_of(&self, other: &Self) -> bool {
        let login = |kept: &Self| (kept.cell.clone(), kept.user.clone(), kept.grant.renewal.clone());
        login(self) == login(other) && self.grant.without == other.grant.without
    }

    /// The user, and the groups whose rights the token does not have: for messages.
    #[must_use]
    pub fn label(&self) -> String {
        match self.grant.without.as_slice() {
            [] => self.user.clone(),
            without => format!("{} without {}", self.user, without.join(", ")),
        }
    }

    /// Whether the token is valid at a time.
    #[must_use]
    pub fn is_good_at(&self, now: UnixTime) -> bool {
        self.token().expires().is_none_or(|end| end > now)
    }
}

impl From<DecodeError> for BadToken {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

impl fmt::Debug for KeptToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cell, user, grant, .. } = self;
        write!(f, "KeptToken({user}@{cell}, {grant:?})")
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::kept;
    use super::*;

    #[test]
    fn it_reads_back_and_does_not_show_its_key() {
        let kept = kept("example.org", 5_000_000_000);
        assert_eq!(KeptToken::decode(&kept.encode()), Ok(kept.clone()));
        let shown = format!("{kept:?}");
        assert!(shown.starts_with("KeptToken(alice@example.org") && !shown.contains("90, 90"), "{shown}");
    }

    #[test]
    fn damage_is_an_error() {
        let bytes = kept("example.org", 5_000_000_000).encode();
        for at in 0..bytes.len() {
            assert_eq!(KeptToken::decode(&bytes[..at]), Err(BadToken));
        }
        let mut later = bytes.to_vec();
        later[15] = 2;
        assert_eq!(KeptToken::decode(&later), Err(BadToken));
    }
}
