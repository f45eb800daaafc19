//! Packet protection of one end of a connection, with the current key of its chain.

use afs_rpc::{Level, UnixTime};
use afs_rx::{Overhead, PacketContext, SecurityError};
use bytes::Bytes;
use parking_lot::Mutex;

use super::key_chain::{Derivation, KeyChain};
use super::{Lifetime, MasterKey};
use crate::crypto::Confounders;

/// Seals and opens the packets of one end of a connection, with the current key. The chain is locked for the choice of a key, and
/// no lock is held while the cipher runs.
pub(super) struct PacketProtection {
    level: Level,
    overhead: Overhead,
    chain: Mutex<KeyChain>,
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
        Ok(Self { level, overhead, chain: Mutex::new(chain), confounders })
    }

    pub(super) const fn level(&self) -> Level {
        self.level
    }

    pub(super) const fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The current number and its transport key.
    pub(super) fn transport_key(&self) -> Result<(u32, MasterKey), SecurityError> {
        let chain = self.chain.lock();
        let number = chain.current();
        Ok((number, chain.transport_key(number)?))
    }

    /// Returns the header's checksum field: the number of the key.
    pub(super) fn seal(
        &self,
        packet: &PacketContext,
        payload: &mut Vec<u8>,
        now: UnixTime,
    ) -> Result<u16, SecurityError> {
        if self.level == Level::Clear {
            // No key is used, so none is used up.
            return Ok(self.chain.lock().current() as u16);
        }
        let (number, keys) = self.chain.lock().sending(payload.len(), now)?;
        keys.seal(packet, payload, &self.confounders)?;
        Ok(number as u16)
    }

    pub(super) fn open(
        &self,
        packet: &PacketContext,
        payload: Bytes,
        now: UnixTime,
    ) -> Result<Bytes, SecurityError> {
        if self.level == Level::Clear {
            return Ok(payload);
        }
        let (number, keys) = self.chain.lock().receiving(packet.checksum)?;
        let len = payload.len();
        let data = keys.open(packet, payload)?;
        self.chain.lock().verified(number, len, now);
        Ok(data)
    }
}
