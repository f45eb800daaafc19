//! State of a login in progress, sealed and kept by the client.

use std::time::Duration;

use afs_rpc::Instant;
use afs_wire::error::AbortCode;
use afs_wire::login::{self, UserText, Wish};
use afs_wire::xdr::{Decode, Encode, Reader};
use zeroize::Zeroizing;

use super::LoginServer;
use super::rate_limit::Counted;
use crate::grant::put_opaque;
use crate::user::UserName;

/// Longest duration of a login, with a user at a security key.
pub(super) const LIFETIME: Duration = Duration::from_secs(120);
/// Longest state of an exchange.
const STATE_LEN_MAX: usize = 512;

/// The kind of exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Method {
    Passphrase,
    Ssh,
}

/// State that the server needs when the client continues.
pub(super) struct Attempt {
    pub(super) method: Method,
    pub(super) user: UserName,
    pub(super) wish: Wish,
    /// The counters of the attempt; `None` for a login with a proof that cannot be guessed.
    pub(super) counted: Option<Counted>,
    /// State of the exchange. Holds secrets.
    pub(super) state: Zeroizing<Vec<u8>>,
}

impl Method {
    fn about(self) -> &'static [u8] {
        match self {
            Self::Passphrase => b"andrew login attempt passphrase 1",
            Self::Ssh => b"andrew login attempt ssh 1",
        }
    }
}

impl LoginServer {
    /// Seals the state of an attempt that begins now.
    pub(super) fn seal_attempt(&self, attempt: &Attempt) -> Result<login::Attempt, AbortCode> {
        let mut plain = Zeroizing::new(Vec::with_capacity(STATE_LEN_MAX * 2));
        self.env.now().as_nanos().encode(&mut plain);
        attempt.user.to_wire().encode(&mut plain);
        attempt.wish.encode(&mut plain);
        if let Some(counted) = attempt.counted {
            counted.user.encode(&mut plain);
            counted.source.encode(&mut plain);
            counted.known.encode(&mut plain);
        }
        put_opaque(&attempt.state, &mut plain);
        let sealed = self.attempts.seal(attempt.method.about(), &plain, &self.env);
        login::Attempt::new(sealed).map_err(|_| AbortCode::LGNIO)
    }

    /// Opens the state of an attempt of this process that is not too old.
    pub(super) fn open_attempt(&self, method: Method, sealed: &login::Attempt) -> Result<Attempt, AbortCode> {
        let plain = self.attempts.open(method.about(), sealed).ok_or(AbortCode::LGNOVER)?;
        let (begun, attempt) = read(method, &plain).ok_or(AbortCode::LGNOVER)?;
        if self.env.now().saturating_since(begun) > LIFETIME {
            return Err(AbortCode::LGNOVER);
        }
        Ok(attempt)
    }
}

fn read(method: Method, plain: &[u8]) -> Option<(Instant, Attempt)> {
    let mut reader = Reader::new(plain);
    let r = &mut reader;
    let begun = Instant::from_nanos(u64::decode(r).ok()?);
    let user = UserName::from_wire(&UserText::decode(r).ok()?).ok()?;
    let wish = Wish::decode(r).ok()?;
    let counted = match method {
        Method::Passphrase => Some(read_counted(r)?),
        Method::Ssh => None,
    };
    let state = Zeroizing::new(r.opaque(STATE_LEN_MAX).ok()?.to_vec());
    Some((begun, Attempt { method, user, wish, counted, state }))
}

fn read_counted(r: &mut Reader<'_>) -> Option<Counted> {
    Some(Counted { user: u64::decode(r).ok()?, source: u64::decode(r).ok()?, known: bool::decode(r).ok()? })
}
