//! Client session of rxgk.

use std::sync::{Arc, OnceLock};

use afs_rpc::{Level, UnixTime};
use afs_rx::{
    Challenge, Cid, ClientSecurity, Epoch, Overhead, PacketContext, PacketSecurity, SecurityError,
    SecurityReport, Side,
};
use bytes::Bytes;

use super::key_chain::Derivation;
use super::packet_protection::PacketProtection;
use super::source::Holder;
use super::{Authenticator, ConnectionSeed, PacketKeys, Response, RxgkTime, code};
use crate::crypto::Confounders;

/// Authenticates with a token, and protects packets with it.
pub(super) struct RxgkClient {
    holder: Arc<Holder>,
    start: RxgkTime,
    overhead: Overhead,
    /// Created with the first packet, when the connection's ids are known.
    protection: OnceLock<PacketProtection>,
}

impl RxgkClient {
    pub(super) fn new(holder: Arc<Holder>) -> Self {
        let start = RxgkTime::from(holder.env.wall());
        // All keys have the overhead of their encryption type and level.
        let keys = PacketKeys::new(holder.token.level, &holder.token.key, Side::Client);
        let overhead = keys.map(|keys| keys.overhead()).unwrap_or_default();
        Self { holder, start, overhead, protection: OnceLock::new() }
    }

    fn protection(&self, epoch: Epoch, cid: Cid, now: UnixTime) -> Result<&PacketProtection, SecurityError> {
        if let Some(protection) = self.protection.get() {
            return Ok(protection);
        }
        // Of several that are made at the same time one remains, and seals all packets.
        let made = self.make_protection(ConnectionSeed { epoch, cid, start: self.start }, now)?;
        Ok(self.protection.get_or_init(|| made))
    }

    fn make_protection(
        &self,
        seed: ConnectionSeed,
        now: UnixTime,
    ) -> Result<PacketProtection, SecurityError> {
        let token = &self.holder.token;
        let confounders = Confounders::seeded_by(&self.holder.env).map_err(code::of)?;
        let (master, level) = (token.key.clone(), token.level);
        let derivation = Derivation { master, seed, level, side: Side::Client };
        PacketProtection::new(derivation, token.lifetime, 0, confounders, now)
    }
}

impl PacketSecurity for RxgkClient {
    fn index(&self) -> u8 {
        self.holder.token.variant.index()
    }

    fn overhead(&self) -> Overhead {
        self.overhead
    }

    fn keeps_data(&self) -> bool {
        self.holder.token.level == Level::Clear
    }

    fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
        let now = self.holder.env.wall();
        self.protection(packet.epoch, Cid::of(packet.cid_and_channel), now)?.seal(packet, payload, now)
    }

    fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        let now = self.holder.env.wall();
        self.protection(packet.epoch, Cid::of(packet.cid_and_channel), now)?.open(packet, payload, now)
    }

    fn report(&self) -> SecurityReport {
        let level = self.holder.token.level.number();
        let expires = self.holder.token.expires().map_or(0, UnixTime::secs_u32);
        SecurityReport { kind: super::REPORT_KIND, level, flags: 0, expires }
    }
}

impl ClientSecurity for RxgkClient {
    fn respond(&mut self, challenge: &Challenge<'_>) -> Result<afs_rx::Response, SecurityError> {
        let nonce = challenge.payload.try_into().map_err(|_| code::BAD_CHALLENGE)?;
        let holder = self.holder.clone();
        let (token, env) = (&holder.token, &holder.env);
        let protection = self.protection(challenge.epoch, challenge.cid, holder.env.wall())?;
        let (number, transport) = protection.transport_key()?;
        let mut proof = Authenticator::new(nonce, token.level, challenge.epoch, challenge.cid);
        proof.call_numbers = challenge.call_numbers;
        proof.appdata = holder.said.appdata(token.variant, token.level, env)?;
        let authenticator = proof.seal(&transport, env)?;
        let response = Response { start: self.start, token: token.sealed.clone(), authenticator };
        Ok(afs_rx::Response { payload: response.encode(), checksum: number as u16 })
    }
}
