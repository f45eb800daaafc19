//! Encoding of CHALLENGE and RESPONSE, version 2: `docs/protocol/rxkad.md` "5. Challenge / response".

use std::ops::{Range, RangeInclusive};

use afs_rx::{Cid, Epoch};
use afs_wire::xdr::Reader;

use super::{INDEX, RxkadError, SessionKey};

const VERSION: u32 = 2;

/// Bytes of a RESPONSE before its ticket.
const FIXED_LEN: usize = 56;
/// The sealed part of these.
const SEALED: Range<usize> = 8..48;
const CHECKSUM: Range<usize> = 16..20;

/// Permitted length of a ticket in bytes.
pub(super) const TICKET_LEN: RangeInclusive<usize> = 32..=12_000;

/// A server's challenge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChallengeText {
    pub nonce: u32,
    /// The least level that the server accepts, as a number.
    pub minimum: i32,
}

impl ChallengeText {
    pub(super) fn encode(self) -> Vec<u8> {
        [VERSION, self.nonce, self.minimum.cast_unsigned(), 0]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect()
    }

    /// Only version 2: a server that has seen this client's header checksums sends nothing older.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, RxkadError> {
        let mut reader = Reader::new(bytes);
        let mut word = || reader.u32().map_err(|_| RxkadError::PacketShort);
        let (version, nonce, minimum) = (word()?, word()?, word()?);
        word()?;
        if version == VERSION {
            Ok(Self { nonce, minimum: minimum.cast_signed() })
        } else {
            Err(RxkadError::OldVersion)
        }
    }
}

/// The sealed part of a response, without the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SealedPart {
    pub epoch: Epoch,
    pub cid: Cid,
    pub call_numbers: [u32; 4],
    /// The challenge's nonce plus one.
    pub nonce: u32,
    pub level: i32,
}

/// A RESPONSE as on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseText<'a> {
    fixed: [u8; FIXED_LEN],
    /// The format of the ticket, or the number of its key.
    pub kvno: u32,
    pub ticket: &'a [u8],
}

impl SealedPart {
    /// Seals and encodes a RESPONSE.
    pub(super) fn seal(&self, key: &SessionKey, kvno: u32, ticket: &[u8]) -> Result<Vec<u8>, RxkadError> {
        let ticket_len = u32::try_from(ticket.len()).map_err(|_| RxkadError::TicketLength)?;
        if !TICKET_LEN.contains(&ticket.len()) {
            return Err(RxkadError::TicketLength);
        }
        let [a, b, c, d] = self.call_numbers;
        let (index, level) = (u32::from(INDEX), self.level.cast_unsigned());
        let sealed = [self.epoch.0, self.cid.0, 0, index, a, b, c, d, self.nonce, level];
        let mut out = Vec::with_capacity(FIXED_LEN + ticket.len());
        for word in [VERSION, 0].into_iter().chain(sealed).chain([kvno, ticket_len]) {
            out.extend(word.to_be_bytes());
        }
        let sum = checksum(&out);
        out[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
        key.cipher().encrypt_pcbc(key.initial_vector(), out[SEALED].as_chunks_mut().0);
        out.extend_from_slice(ticket);
        Ok(out)
    }
}

impl<'a> ResponseText<'a> {
    /// Decodes a RESPONSE. Nothing in it is authenticated yet.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, RxkadError> {
        let (fixed, ticket) = bytes.split_first_chunk().ok_or(RxkadError::PacketShort)?;
        let [version, .., kvno, ticket_len] = words(fixed);
        if version != VERSION {
            return Err(RxkadError::OldVersion);
        }
        let ticket = ticket.get(..ticket_len as usize).filter(|ticket| TICKET_LEN.contains(&ticket.len()));
        Ok(Self { fixed: *fixed, kvno, ticket: ticket.ok_or(RxkadError::TicketLength)? })
    }

    /// Opens the sealed part with the ticket's session key.
    ///
    /// # Errors
    /// [`RxkadError::Sealed`] if it was not sealed with that key.
    pub(super) fn open(&self, key: &SessionKey) -> Result<SealedPart, RxkadError> {
        let mut clear = self.fixed;
        key.cipher().decrypt_pcbc(key.initial_vector(), clear[SEALED].as_chunks_mut().0);
        let [_, _, epoch, cid, sum, index, a, b, c, d, nonce, level, _, _] = words(&clear);
        clear[CHECKSUM].fill(0);
        if sum != checksum(&clear) || index != u32::from(INDEX) {
            return Err(RxkadError::Sealed);
        }
        let (epoch, cid) = (Epoch(epoch), Cid(cid));
        Ok(SealedPart { epoch, cid, call_numbers: [a, b, c, d], nonce, level: level.cast_signed() })
    }
}

/// Checksum of the decrypted fixed part, with the checksum field zero.
fn checksum(clear: &[u8]) -> u32 {
    let add = |sum: u32, byte: &u8| u32::from(*byte).wrapping_add(sum.wrapping_mul(0x1020_4081));
    clear.iter().fold(1_000_003, add)
}

fn words(bytes: &[u8; FIXED_LEN]) -> [u32; FIXED_LEN / 4] {
    let mut out = [0; FIXED_LEN / 4];
    for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    out
}
