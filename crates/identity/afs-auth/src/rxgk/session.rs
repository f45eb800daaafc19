//! Server session of rxgk: `docs/protocol/rxgk.md` "5. Challenge and response".

use std::sync::Arc;

use afs_rpc::{Class, Credential, Level, Protection, UnixTime};
use afs_rx::{
    Identity, Instant, Overhead, PacketContext, PacketSecurity, Proof, SecurityError, SecurityReport,
    ServerSession, Side, Verified,
};
use bytes::Bytes;
use zeroize::Zeroizing;

use super::auth_name::holder;
use super::key_chain::Derivation;
use super::packet_protection::PacketProtection;
use super::server::Offered;
use super::{
    Authenticator, ConnectionSeed, NONCE_LEN, Response, RxgkTime, TokenContents, callback, code, open_token,
    person,
};
use crate::crypto::Confounders;

/// Challenges a client, and protects packets once it has responded.
pub(super) struct RxgkSession {
    offered: Arc<Offered>,
    open_challenge: Option<OpenChallenge>,
    authenticated: Option<Authenticated>,
}

type Seed = Zeroizing<[u8; Confounders::SEED_LEN]>;

/// An open challenge, and random seeds for the connection.
struct OpenChallenge {
    nonce: [u8; NONCE_LEN],
    /// Seed of this connection's confounders.
    seed: Seed,
    /// Seed of the confounders of connections back to the client.
    callback_seed: Seed,
}

/// State of an authenticated client.
struct Authenticated {
    protection: PacketProtection,
    expires: RxgkTime,
    credential: Arc<Credential>,
}

impl RxgkSession {
    pub(super) fn new(offered: Arc<Offered>) -> Self {
        Self { offered, open_challenge: None, authenticated: None }
    }

    /// The authenticated client, while its token is valid.
    fn authenticated(&self, now: UnixTime) -> Result<&Authenticated, SecurityError> {
        let authenticated = self.authenticated.as_ref().ok_or(code::NOT_AUTHENTICATED)?;
        if authenticated.expires.has_passed(now) { Err(code::EXPIRED) } else { Ok(authenticated) }
    }

    fn now(&self) -> UnixTime {
        self.offered.env.wall()
    }

    fn check(
        &self,
        open_challenge: &OpenChallenge,
        proof: &Proof<'_>,
    ) -> Result<(Authenticated, Authenticator), SecurityError> {
        let response = Response::decode(proof.payload)?;
        let token = open_token(self.offered.variant, &response.token, &self.offered.keys.get())?;
        let now = self.now();
        if token.expires.has_passed(now) {
            return Err(code::EXPIRED);
        }
        if token.level < self.offered.minimum {
            return Err(code::BAD_LEVEL);
        }
        let principal = holder(&token.identities, &self.offered.names)?;
        let protection = protection(open_challenge, proof, response.start, &token, now)?;
        let authenticator = open_authenticator(open_challenge, proof, &response, &token, &protection)?;
        let credential = Credential {
            person: person::of(&principal, authenticator.appdata.expose()),
            principal,
            protection: Protection { class: Class::Rxgk, level: token.level },
            expires: token.expires.expiry(),
            callback: self.callback(open_challenge, &authenticator, &token)?,
        };
        Ok((
            Authenticated { protection, expires: token.expires, credential: Arc::new(credential) },
            authenticator,
        ))
    }

    fn callback(
        &self,
        open_challenge: &OpenChallenge,
        authenticator: &Authenticator,
        token: &TokenContents,
    ) -> Result<Option<afs_rpc::Security>, SecurityError> {
        let Some(back) = callback::token(self.offered.variant, authenticator.appdata.expose(), token.level)
        else {
            return Ok(None);
        };
        let confounders = Confounders::new(&open_challenge.callback_seed).map_err(code::of)?;
        let env = confounders.into_env(&self.offered.env);
        Ok(Some(afs_rpc::Security::new(back.source(env))))
    }
}

/// The packet protection of the connection, with the key number of the response.
fn protection(
    open_challenge: &OpenChallenge,
    proof: &Proof<'_>,
    start: RxgkTime,
    token: &TokenContents,
    now: UnixTime,
) -> Result<PacketProtection, SecurityError> {
    // The connection begins at 0, so 1 is the highest number that the client can have.
    let number = match proof.checksum {
        number @ (0 | 1) => u32::from(number),
        _ => return Err(code::BAD_KEY_NUMBER),
    };
    let seed = ConnectionSeed { epoch: proof.epoch, cid: proof.cid, start };
    let (master, level) = (token.key.clone(), token.level);
    let derivation = Derivation { master, seed, level, side: Side::Server };
    let confounders = Confounders::new(&open_challenge.seed).map_err(code::of)?;
    PacketProtection::new(derivation, token.lifetime, number, confounders, now)
}

fn open_authenticator(
    open_challenge: &OpenChallenge,
    proof: &Proof<'_>,
    response: &Response,
    token: &TokenContents,
    protection: &PacketProtection,
) -> Result<Authenticator, SecurityError> {
    let (_, transport) = protection.transport_key()?;
    let authenticator = Authenticator::open(&transport, &response.authenticator)?;
    let expected = Authenticator::new(open_challenge.nonce, token.level, proof.epoch, proof.cid);
    if authenticator.matches(&expected) { Ok(authenticator) } else { Err(code::BAD_CHALLENGE) }
}

impl PacketSecurity for RxgkSession {
    fn index(&self) -> u8 {
        self.offered.variant.index()
    }

    fn overhead(&self) -> Overhead {
        self.authenticated.as_ref().map(|client| client.protection.overhead()).unwrap_or_default()
    }

    fn keeps_data(&self) -> bool {
        self.authenticated.as_ref().is_some_and(|client| client.protection.level() == Level::Clear)
    }

    fn ended(&self) -> Option<SecurityError> {
        let expired = self.authenticated.as_ref().is_some_and(|client| client.expires.has_passed(self.now()));
        expired.then_some(code::EXPIRED)
    }

    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        let now = self.now();
        self.authenticated(now)?.protection.seal(packet, payload, now)
    }

    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        let now = self.now();
        self.authenticated(now)?.protection.open(packet, payload, now)
    }

    fn report(&self) -> SecurityReport {
        const AUTHENTICATED: u32 = 2;
        const EXPIRED: u32 = 4;
        let Some(authenticated) = &self.authenticated else {
            return SecurityReport { kind: super::REPORT_KIND, ..SecurityReport::default() };
        };
        let expired = if authenticated.expires.has_passed(self.now()) { EXPIRED } else { 0 };
        SecurityReport {
            kind: super::REPORT_KIND,
            level: authenticated.protection.level().number(),
            flags: AUTHENTICATED | expired,
            expires: authenticated.credential.expires.map_or(0, UnixTime::secs_u32),
        }
    }
}

impl ServerSession for RxgkSession {
    fn is_authenticated(&self, _: Instant) -> bool {
        self.authenticated.is_some()
    }

    /// The same nonce until a response succeeds or fails, since a response may cross the next challenge.
    fn challenge(&mut self, _: Instant, random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        let open_challenge = self.open_challenge.get_or_insert_with(|| {
            let (mut nonce, mut seed, mut callback_seed) = ([0; NONCE_LEN], Seed::default(), Seed::default());
            random(&mut nonce);
            random(&mut *seed);
            random(&mut *callback_seed);
            OpenChallenge { nonce, seed, callback_seed }
        });
        open_challenge.nonce.to_vec()
    }

    fn verify(&mut self, response: &Proof<'_>) -> Result<Verified, SecurityError> {
        let open_challenge = self.open_challenge.take().ok_or(code::BAD_CHALLENGE)?;
        let (authenticated, answer) = self.check(&open_challenge, response)?;
        self.authenticated = Some(authenticated);
        Ok(Verified { call_numbers: Some(answer.call_numbers) })
    }

    fn identity(&self) -> Option<Identity> {
        self.authenticated.as_ref().map(|client| client.credential.clone() as Identity)
    }
}
