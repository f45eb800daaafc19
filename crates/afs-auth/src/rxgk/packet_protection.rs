//! Packet protection of one end of a connection, with the current key of its chain.

use afs_rpc::{Level, UnixTime};
use afs_rx::{Overhead, PacketContext, SecurityError};
use bytes::Bytes;

use super::key_chain::{Derivation, KeyChain};
use super::{Lifetime, MasterKey};
use crate::crypto::Confounders;

/// Seals and opens the packets of one end of a connection, with the current key.
pub(super) struct PacketProtection {
    level: Level,
    overhead: Overhead,
    chain: KeyChain,
    confounders: Confounders,
}

impl PacketProtection {
    /// Begins with the key of this number.
    pub(super) fn new(
        derivation: Derivation,
        lifetime: Lifetime,
        number: u32,
        confounders: Confounders,
        now: UnixTime,
    ) -> Result<Self, SecurityError> {
        let level = derivation.level;
        let mut chain = KeyChain::new(derivation, lifetime, number, now);
        let overhead = chain.keys(number)?.overhead();
        Ok(Self { level, overhead, chain, confounders })
    }

    pub(super) const fn level(&self) -> Level {
        self.level
    }

    pub(super) const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The current number and its transport key.
    pub(super) fn transport_key(&self) -> Result<(u32, MasterKey), SecurityError> {
        let number = self.chain.current();
        Ok((number, self.chain.transport_key(number)?))
    }

    /// Returns the header's checksum field: the number of the key.
    pub(super) fn seal(
        &mut self,
        packet: &PacketContext,
        payload: &mut Vec<u8>,
        now: UnixTime,
    ) -> Result<u16, SecurityError> {
        if self.level == Level::Clear {
            // No key is used, so none is used up.
            return Ok(self.chain.current() as u16);
        }
        let (number, keys) = self.chain.sending(payload.len(), now)?;
        keys.seal(packet, payload, &mut self.confounders)?;
        Ok(number as u16)
    }

    pub(super) fn open(
        &mut self,
        packet: &PacketContext,
        payload: Bytes,
        now: UnixTime,
    ) -> Result<Bytes, SecurityError> {
        if self.level == Level::Clear {
            return Ok(payload);
        }
        let number = self.chain.number_of(packet.checksum)?;
        let len = payload.len();
        let data = self.chain.keys(number)?.open(packet, payload)?;
        self.chain.verified(number, len, now);
        Ok(data)
    }
}
