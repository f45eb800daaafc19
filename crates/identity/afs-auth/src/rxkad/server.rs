//! Server session of rxkad.

use std::sync::Arc;

use afs_rpc::{Class, Credential, EnvRef, Level, Principal, Protection, TokenGeneration, UnixTime};
use afs_rx::{
    Identity, Instant, Overhead, PacketContext, PacketSecurity, Proof, SecurityError, SecurityReport,
    ServerSecurity, ServerSession, Verified,
};
use bytes::Bytes;

use super::handshake::{ChallengeText, ResponseText, SealedPart};
use super::packets::{Packets, overhead, report};
use super::ticket::{TicketPart, Validity, check_times, open};
use super::{INDEX, RxkadError, SessionKey};
use crate::keys::SharedKeys;
use crate::names::{LocalNames, afs_name};

/// Requirements of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RxkadLimits {
    /// The least level a client may choose. Default [`Level::Clear`], as OpenAFS's servers have it.
    pub minimum: Level,
}

/// Accepts connections whose clients have a ticket for the cell.
#[derive(Clone)]
pub struct RxkadServer(Arc<Shared>);

struct Shared {
    keys: SharedKeys,
    names: Arc<LocalNames>,
    env: EnvRef,
    limits: RxkadLimits,
}

impl RxkadServer {
    /// Accepts tickets for the cell's keys, of which only those of kind `rxkad_krb5` are used.
    #[must_use]
    pub fn new(keys: SharedKeys, names: Arc<LocalNames>, env: EnvRef, limits: RxkadLimits) -> Self {
        Self(Arc::new(Shared { keys, names, env, limits }))
    }
}

impl ServerSecurity for RxkadServer {
    fn index(&self) -> u8 {
        INDEX
    }

    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(Session { server: self.0.clone(), nonce: None, authenticated: None })
    }
}

/// One connection.
struct Session {
    server: Arc<Shared>,
    /// Nonce of the open challenge. Its repetitions have the same nonce, so that a valid response on a slow network
    /// is not refused.
    nonce: Option<u32>,
    authenticated: Option<Authenticated>,
}

/// Result of a valid response.
struct Authenticated {
    packets: Packets,
    credential: Arc<Credential>,
}

impl Session {
    /// The state of an authenticated connection whose ticket is still valid: the time is checked for every packet.
    fn authenticated(&self) -> Result<&Authenticated, RxkadError> {
        let expired = self.is_expired();
        let authenticated = self.authenticated.as_ref().ok_or(RxkadError::NotValidYet)?;
        if expired { Err(RxkadError::Expired) } else { Ok(authenticated) }
    }

    fn is_expired(&self) -> bool {
        let end = self.authenticated.as_ref().and_then(|client| client.credential.expires);
        end.is_some_and(|end| self.server.env.wall().secs > end.secs)
    }

    /// In the order of `docs/protocol/rxkad.md` "5. Challenge / response".
    fn verify_response(&self, proof: &Proof<'_>) -> Result<(Authenticated, SealedPart), RxkadError> {
        let response = ResponseText::decode(proof.payload)?;
        let ticket = open(response.kvno, response.ticket, &self.server.keys.get())?;
        let validity = check_times(&ticket, self.server.env.wall().secs)?;
        let key = SessionKey::from_kerberos(ticket.keytype, ticket.key.expose())?;
        let part = response.open(&key)?;
        let level = self.check(&part, proof)?;
        let credential = self.server.credential(&ticket, validity, level)?;
        Ok((Authenticated { packets: Packets::new(&key, level), credential: Arc::new(credential) }, part))
    }

    fn check(&self, part: &SealedPart, proof: &Proof<'_>) -> Result<Level, RxkadError> {
        let here = (part.epoch, part.cid) == (proof.epoch, proof.cid);
        let numbers_are_sane = part.call_numbers.iter().all(|number| number.cast_signed() >= 0);
        if !here || !numbers_are_sane {
            return Err(RxkadError::Sealed);
        }
        if self.nonce.map(|nonce| nonce.wrapping_add(1)) != Some(part.nonce) {
            return Err(RxkadError::OutOfSequence);
        }
        let level = Level::from_number(part.level).filter(|level| *level >= self.server.limits.minimum);
        level.ok_or(RxkadError::Level)
    }
}

impl Shared {
    fn credential(
        &self,
        ticket: &TicketPart,
        validity: Validity,
        level: Level,
    ) -> Result<Credential, RxkadError> {
        let components: Vec<&str> = ticket.client.iter().map(String::as_str).collect();
        let name = afs_name(&components)?;
        let mut principal = self.names.principal(name.name, name.instance, &ticket.realm)?;
        if let Principal::Named { terms, .. } = &mut principal {
            terms.generation = TokenGeneration::of_ticket(ticket.authtime);
        }
        let expires = validity.0.map(|secs| UnixTime { secs, nanos: 0 });
        let protection = Protection { class: Class::Rxkad, level };
        Ok(Credential { expires, ..Credential::new(principal, protection) })
    }
}

impl PacketSecurity for Session {
    fn index(&self) -> u8 {
        INDEX
    }

    fn overhead(&self) -> Overhead {
        self.authenticated.as_ref().map(|client| overhead(client.packets.level())).unwrap_or_default()
    }

    fn keeps_data(&self) -> bool {
        self.authenticated.as_ref().is_some_and(|client| client.packets.level() == Level::Clear)
    }

    fn ended(&self) -> Option<SecurityError> {
        self.is_expired().then(|| RxkadError::Expired.into())
    }

    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(self.authenticated()?.packets.seal(packet, payload)?)
    }

    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(self.authenticated()?.packets.open(packet, payload)?)
    }

    fn report(&self) -> SecurityReport {
        report(self.authenticated.as_ref().map(|client| (client.packets.level(), client.credential.expires)))
    }
}

impl ServerSession for Session {
    fn is_authenticated(&self, _now: Instant) -> bool {
        self.authenticated.is_some()
    }

    fn challenge(&mut self, _now: Instant, random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        let nonce = *self.nonce.get_or_insert_with(|| {
            let mut bytes = [0; 4];
            random(&mut bytes);
            u32::from_be_bytes(bytes)
        });
        let minimum = i32::from(self.server.limits.minimum.number());
        ChallengeText { nonce, minimum }.encode()
    }

    fn verify(&mut self, response: &Proof<'_>) -> Result<Verified, SecurityError> {
        let (authenticated, part) = self.verify_response(response)?;
        self.authenticated = Some(authenticated);
        self.nonce = None;
        Ok(Verified { call_numbers: Some(part.call_numbers) })
    }

    fn identity(&self) -> Option<Identity> {
        self.authenticated.as_ref().map(|client| client.credential.clone() as Identity)
    }
}
