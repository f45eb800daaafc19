//! Result of a login: a token, with the right to renew it.

use std::fmt;
use std::time::Duration;

use afs_auth::Token;
use afs_rpc::UnixTime;
use afs_wire::login::{GroupText, GroupTexts, Renewal, SealedGrant};
use afs_wire::xdr::{ByteString, Decode, DecodeError, Encode, Reader};
use zeroize::Zeroizing;

use crate::host_key::HostKey;

/// Longest encoded token.
const TOKEN_LEN_MAX: usize = 16 * 1024;

/// A token, and the right to have it renewed.
#[derive(Clone, PartialEq, Eq)]
pub struct Grant {
    /// The token.
    pub token: Token,
    /// Evidence that the login service requires for a renewal; empty when the token cannot be renewed.
    pub renewal: Renewal,
    /// End of the renewable time.
    pub renewable_until: UnixTime,
    /// The cell's login host key, from an authenticated service, to be remembered for later logins. `None` for tokens
    /// of other origin.
    pub host_key: Option<HostKey>,
    /// The names of the groups whose rights the token does not have, as they were when it was made. For display: the
    /// servers read the groups in the token itself.
    pub without: Vec<String>,
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, renewal, renewable_until, without, .. } = self;
        write!(f, "Grant({token:?}, renewal of {} bytes until {}", renewal.len(), renewable_until.secs)?;
        write!(f, ", without {without:?})")
    }
}

/// Bytes that are not an encoded grant. Does not reveal them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("what should hold a token does not")]
pub struct BadGrant;

impl From<DecodeError> for BadGrant {
    fn from(_: DecodeError) -> Self {
        Self
    }
}

impl Grant {
    /// The grant of a token of other origin: it cannot be renewed here.
    #[must_use]
    pub fn of_token(token: Token) -> Self {
        Self {
            token,
            renewal: Renewal::empty(),
            renewable_until: UnixTime::default(),
            host_key: None,
            without: Vec::new(),
        }
    }

    /// The plain form, which holds the token's key: it must be sealed before it is sent.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let token = self.token.encode();
        // Capacity for all of it, so that growing leaves no copies behind.
        let mut out = Zeroizing::new(Vec::with_capacity(token.len() + self.renewal.len() + 128));
        put_opaque(&token, &mut out);
        self.renewal.encode(&mut out);
        self.renewable_until.secs.encode(&mut out);
        put_opaque(self.host_key.as_ref().map_or(&[], |key| key.0.as_slice()), &mut out);
        // Nothing for a token with all groups: earlier versions read nothing more.
        if !self.without.is_empty() {
            GroupTexts::first_of(self.without.iter().map(|name| GroupText::truncated(name.as_bytes())))
                .encode(&mut out);
        }
        out
    }

    /// Decodes the bytes of [`Grant::encode`].
    ///
    /// # Errors
    /// [`BadGrant`].
    pub fn decode(bytes: &[u8]) -> Result<Self, BadGrant> {
        let mut reader = Reader::new(bytes);
        let token = Token::decode(reader.opaque(TOKEN_LEN_MAX)?).map_err(|_| BadGrant)?;
        let renewal = ByteString::decode(&mut reader)?;
        let renewable_until = UnixTime { secs: u64::decode(&mut reader)?, nanos: 0 };
        let host_key = match reader.opaque(32)? {
            [] => None,
            key => Some(HostKey(key.try_into().map_err(|_| BadGrant)?)),
        };
        let without = if reader.remaining() == 0 { Vec::new() } else { group_names(&mut reader)? };
        reader.finish()?;
        Ok(Self { token, renewal, renewable_until, host_key, without })
    }

    /// Its size is far below the bound unless the token is oversized; one that does not fit is refused.
    pub(crate) fn to_wire(sealed: Vec<u8>) -> Result<SealedGrant, BadGrant> {
        SealedGrant::new(sealed).map_err(|_| BadGrant)
    }

    /// When to renew: with a tenth of the time from `now` to its expiry left, but at least five minutes before it.
    /// `None` when it cannot be renewed beyond its expiry, or never expires.
    #[must_use]
    pub fn renew_at(&self, now: UnixTime) -> Option<UnixTime> {
        let end = self.token.expires()?;
        if self.renewal.is_empty() || self.renewable_until.secs <= end.secs {
            return None;
        }
        let left = end.secs.saturating_sub(now.secs);
        let early = (left / 10).max(EARLY_MIN.as_secs());
        Some(UnixTime { secs: end.secs.saturating_sub(early).max(now.secs), nanos: 0 })
    }
}

fn group_names(reader: &mut Reader<'_>) -> Result<Vec<String>, BadGrant> {
    let names = GroupTexts::decode(reader)?;
    let text = |name: &GroupText| String::from_utf8(name.as_bytes().to_vec()).map_err(|_| BadGrant);
    names.iter().map(text).collect()
}

/// Least time before its expiry at which a token is renewed.
const EARLY_MIN: Duration = Duration::from_secs(300);

pub(crate) fn put_opaque(bytes: &[u8], out: &mut Vec<u8>) {
    // The bytes are far shorter than 2^32.
    (bytes.len() as u32).encode(out);
    out.extend_from_slice(bytes);
    out.extend_from_slice(&[0; 3][..bytes.len().wrapping_neg() & 3]);
}
