//! Protection of DATA packets: `docs/protocol/rxkad.md` "4. DATA packets".

use std::sync::OnceLock;

use afs_rpc::{Level, UnixTime};
use afs_rx::{Overhead, PacketContext, SecurityReport};
use bytes::Bytes;

use super::cipher::Fcrypt;
use super::{INDEX, RxkadError, SessionKey};

/// Bytes of a cipher block.
const BLOCK: usize = 8;

/// Seals and opens the packets of one connection.
#[derive(Debug)]
pub(super) struct Packets {
    cipher: Fcrypt,
    initial_vector: u64,
    level: Level,
    /// Computed at the first packet, when the connection's ids are known.
    mask: OnceLock<u64>,
}

impl Packets {
    pub(super) fn new(key: &SessionKey, level: Level) -> Self {
        Self { cipher: key.cipher(), initial_vector: key.initial_vector(), level, mask: OnceLock::new() }
    }

    pub(super) fn level(&self) -> Level {
        self.level
    }

    pub(super) fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, RxkadError> {
        let header = overhead(self.level).header;
        let len = payload.len().checked_sub(header).ok_or(RxkadError::DataLength)?;
        if let Some(field) = payload.first_chunk_mut::<4>().filter(|_| header > 0) {
            *field = check_word(packet, len).to_be_bytes();
        }
        match self.level {
            Level::Clear => {}
            Level::Auth => {
                payload.resize(payload.len().max(BLOCK), 0);
                payload.first_chunk_mut().into_iter().for_each(|block| self.encrypt_block(block));
            }
            Level::Crypt => {
                payload.resize(payload.len().next_multiple_of(BLOCK), 0);
                self.cipher.encrypt_pcbc(self.initial_vector, payload.as_chunks_mut().0);
            }
        }
        Ok(self.checksum(packet))
    }

    pub(super) fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, RxkadError> {
        if packet.checksum != self.checksum(packet) {
            return Err(RxkadError::Sealed);
        }
        if self.level == Level::Clear {
            return Ok(payload);
        }
        // In place when the datagram is not shared.
        let mut sealed = payload.try_into_mut().unwrap_or_else(|shared| shared.as_ref().into());
        self.unseal(&mut sealed)?;
        let len = data_len(packet, &sealed)?;
        let start = overhead(self.level).header;
        if sealed.len() - start < len {
            return Err(RxkadError::DataLength);
        }
        Ok(sealed.freeze().slice(start..start + len))
    }

    /// The result has at least one whole block.
    fn unseal(&self, sealed: &mut [u8]) -> Result<(), RxkadError> {
        let first = sealed.first_chunk_mut::<BLOCK>().ok_or(RxkadError::DataLength)?;
        if self.level == Level::Auth {
            *first = self.cipher.decrypt(u64::from_be_bytes(*first)).to_be_bytes();
            return Ok(());
        }
        // Linux fills packets up to a fixed size, and not always to whole blocks: docs/protocol/rx.md "5. DATA packets, sizes, jumbograms".
        self.cipher.decrypt_pcbc(self.initial_vector, sealed.as_chunks_mut().0);
        Ok(())
    }

    fn encrypt_block(&self, block: &mut [u8; BLOCK]) {
        *block = self.cipher.encrypt(u64::from_be_bytes(*block)).to_be_bytes();
    }

    /// The header's checksum: it binds call, channel and sequence number to the connection.
    fn checksum(&self, packet: &PacketContext) -> u16 {
        let (cipher, initial_vector) = (&self.cipher, self.initial_vector);
        let mask = *self.mask.get_or_init(|| mask(cipher, initial_vector, packet));
        let place = (packet.cid_and_channel & 3) << 30 | packet.seq & 0x3fff_ffff;
        let [.., high, low, _, _] =
            self.cipher.encrypt((u64::from(packet.call) << 32 | u64::from(place)) ^ mask).to_be_bytes();
        u16::from_be_bytes([high, low]).max(1)
    }
}

/// Overhead of a level.
pub(super) const fn overhead(level: Level) -> Overhead {
    let header = match level {
        Level::Clear => 0,
        Level::Auth => 4,
        Level::Crypt => 8,
    };
    Overhead { header, trailer: header }
}

/// Properties of an authenticated connection for rxdebug.
pub(super) fn report(proven: Option<(Level, Option<UnixTime>)>) -> SecurityReport {
    const KIND: u8 = 3;
    const UNALLOCATED: u32 = 1;
    const AUTHENTICATED: u32 = 2;
    const CHECKSUMS: u32 = 8;
    let Some((level, expires)) = proven else {
        return SecurityReport { kind: KIND, flags: UNALLOCATED, ..SecurityReport::default() };
    };
    let expires = expires.map(UnixTime::secs_u32).unwrap_or_default();
    SecurityReport { kind: KIND, level: level.number(), flags: AUTHENTICATED | CHECKSUMS, expires }
}

/// `docs/protocol/rxkad.md` "3. Keys of a connection", preSeq.
fn mask(cipher: &Fcrypt, initial_vector: u64, packet: &PacketContext) -> u64 {
    let words = [packet.epoch.0, packet.cid_and_channel & !3, 0, u32::from(INDEX)];
    let mut blocks = [join(words[0], words[1]), join(words[2], words[3])].map(u64::to_be_bytes);
    cipher.encrypt_pcbc(initial_vector, &mut blocks);
    u64::from_be_bytes(blocks[1])
}

const fn join(high: u32, low: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

fn mark(packet: &PacketContext) -> u32 {
    (packet.seq ^ packet.call) & 0xffff
}

fn check_word(packet: &PacketContext, len: usize) -> u32 {
    // A datagram's data fits sixteen bits.
    mark(packet) << 16 | u32::try_from(len & 0xffff).unwrap_or_default()
}

fn data_len(packet: &PacketContext, opened: &[u8]) -> Result<usize, RxkadError> {
    let word = opened.first_chunk().map(|word| u32::from_be_bytes(*word)).ok_or(RxkadError::DataLength)?;
    if word >> 16 == mark(packet) { Ok((word & 0xffff) as usize) } else { Err(RxkadError::Sealed) }
}
