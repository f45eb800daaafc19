//! Client session of rxkad.

use afs_rpc::{EnvRef, Level, SecuritySource};
use afs_rx::{
    Challenge, ClientSecurity, Overhead, PacketContext, PacketSecurity, Response, SecurityError,
    SecurityReport,
};
use bytes::Bytes;

use super::handshake::{ChallengeText, SealedPart};
use super::packets::{Packets, overhead, report};
use super::{INDEX, RxkadError, RxkadToken};

/// Creates client sessions with a token.
pub(super) struct Source {
    token: RxkadToken,
    env: EnvRef,
}

impl Source {
    pub(super) fn new(token: RxkadToken, env: EnvRef) -> Self {
        Self { token, env }
    }
}

impl SecuritySource for Source {
    fn name(&self) -> String {
        self.token.name()
    }

    fn session(&self) -> Box<dyn ClientSecurity> {
        let packets = Packets::new(self.token.key(), self.token.level());
        Box::new(Session { token: self.token.clone(), env: self.env.clone(), packets })
    }
}

/// One connection.
struct Session {
    token: RxkadToken,
    env: EnvRef,
    packets: Packets,
}

impl Session {
    fn response_to(&self, challenge: &Challenge<'_>) -> Result<Vec<u8>, RxkadError> {
        let asked = ChallengeText::decode(challenge.payload)?;
        let level = i32::from(self.token.level().number());
        if asked.minimum > level {
            return Err(RxkadError::Level);
        }
        if self.token.expires().is_some_and(|end| self.env.wall() > end) {
            return Err(RxkadError::Expired);
        }
        let part = SealedPart {
            epoch: challenge.epoch,
            cid: challenge.cid,
            call_numbers: challenge.call_numbers,
            nonce: asked.nonce.wrapping_add(1),
            level,
        };
        part.seal(self.token.key(), self.token.format().number(), self.token.ticket())
    }
}

impl PacketSecurity for Session {
    fn index(&self) -> u8 {
        INDEX
    }

    fn overhead(&self) -> Overhead {
        overhead(self.token.level())
    }

    fn keeps_data(&self) -> bool {
        self.token.level() == Level::Clear
    }

    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        Ok(self.packets.seal(packet, payload)?)
    }

    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        Ok(self.packets.open(packet, payload)?)
    }

    fn report(&self) -> SecurityReport {
        report(Some((self.token.level(), self.token.expires())))
    }
}

impl ClientSecurity for Session {
    fn respond(&mut self, challenge: &Challenge<'_>) -> Result<Response, SecurityError> {
        Ok(Response { payload: self.response_to(challenge)?, checksum: 0 })
    }
}
