//! CHALLENGE and RESPONSE, version 2: `docs/protocol/rxkad.md` "5. Challenge / response".

use afs_rx::{Cid, Epoch};
use afs_wire::xdr::Reader;

use super::{INDEX, RxkadError, SessionKey};

const VERSION: u32 = 2;

/// Bytes of a RESPONSE before its sealed part: version, and a word that means nothing.
const HEAD_LEN: usize = 8;
const SEALED_LEN: usize = 40;
/// Bytes of a RESPONSE before its ticket.
const FIXED_LEN: usize = HEAD_LEN + SEALED_LEN + 8;

/// Place of the checksum in the sealed part.
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// Bytes of a ticket.
pub(super) const TICKET_LEN: std::ops::RangeInclusive<usize> = 32..=12_000;

/// What a server asks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ChallengeText {
    pub nonce: u32,
    /// The least level the server takes, as a number.
    pub minimum: i32,
}

impl ChallengeText {
    pub(super) fn encode(self) -> Vec<u8> {
        [VERSION, self.nonce, self.minimum.cast_unsigned(), 0]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect()
    }

    /// Only version 2: a server that has seen our header checksums sends nothing older.
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

/// What is sealed in a response, but for the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub epoch: Epoch,
    pub cid: Cid,
    pub call_numbers: [u32; 4],
    /// The challenge's nonce and one.
    pub nonce: u32,
    pub level: i32,
}

/// A RESPONSE as it travels.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseText<'a> {
    sealed: [u8; SEALED_LEN],
    /// Which format the ticket has, or the number of its key.
    pub kvno: u32,
    pub ticket: &'a [u8],
}

impl Answer {
    /// The whole RESPONSE.
    pub(super) fn seal(&self, key: &SessionKey, kvno: u32, ticket: &[u8]) -> Result<Vec<u8>, RxkadError> {
        if !TICKET_LEN.contains(&ticket.len()) {
            return Err(RxkadError::TicketLength);
        }
        let mut sealed = self.encode(0);
        let text = ResponseText { sealed, kvno, ticket };
        let checksum = text.checksum(sealed);
        sealed[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
        key.cipher().encrypt_pcbc(key.initial_vector(), sealed.as_chunks_mut().0);
        Ok([&text.clear_with(sealed)[..], ticket].concat())
    }

    fn encode(&self, checksum: u32) -> [u8; SEALED_LEN] {
        let [a, b, c, d] = self.call_numbers;
        let index = u32::from(INDEX);
        let level = self.level.cast_unsigned();
        let words = [self.epoch.0, self.cid.0, checksum, index, a, b, c, d, self.nonce, level];
        let mut out = [0; SEALED_LEN];
        for (place, word) in out.as_chunks_mut().0.iter_mut().zip(words) {
            *place = word.to_be_bytes();
        }
        out
    }
}

impl<'a> ResponseText<'a> {
    /// Takes a RESPONSE apart. Nothing in it is proven yet.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, RxkadError> {
        let (fixed, ticket) = bytes.split_first_chunk::<FIXED_LEN>().ok_or(RxkadError::PacketShort)?;
        let mut reader = Reader::new(fixed);
        let mut read = || -> Result<_, afs_wire::xdr::DecodeError> {
            let (version, _) = (reader.u32()?, reader.u32()?);
            Ok((version, *reader.array()?, reader.u32()?, reader.u32()?))
        };
        let (version, sealed, kvno, ticket_len) = read().map_err(|_| RxkadError::PacketShort)?;
        if version != VERSION {
            return Err(RxkadError::OldVersion);
        }
        let ticket = ticket.get(..ticket_len as usize).filter(|ticket| TICKET_LEN.contains(&ticket.len()));
        Ok(Self { sealed, kvno, ticket: ticket.ok_or(RxkadError::TicketLength)? })
    }

    /// Opens the sealed part with the ticket's session key.
    ///
    /// # Errors
    /// [`RxkadError::Sealed`] if whoever made it did not have that key.
    pub(super) fn open(&self, key: &SessionKey) -> Result<Answer, RxkadError> {
        let mut plain = self.sealed;
        key.cipher().decrypt_pcbc(key.initial_vector(), plain.as_chunks_mut().0);
        let [epoch, cid, checksum, index, a, b, c, d, nonce, level] = words(&plain);
        plain[CHECKSUM].fill(0);
        if checksum != self.checksum(plain) || index != u32::from(INDEX) {
            return Err(RxkadError::Sealed);
        }
        let (epoch, cid) = (Epoch(epoch), Cid(cid));
        Ok(Answer { epoch, cid, call_numbers: [a, b, c, d], nonce, level: level.cast_signed() })
    }

    /// The sum over the fixed part with `sealed` in clear and no checksum in it.
    fn checksum(&self, sealed: [u8; SEALED_LEN]) -> u32 {
        let add = |sum: u32, byte: &u8| u32::from(*byte).wrapping_add(sum.wrapping_mul(0x1020_4081));
        self.clear_with(sealed).iter().fold(1_000_003, add)
    }

    fn clear_with(&self, sealed: [u8; SEALED_LEN]) -> [u8; FIXED_LEN] {
        // Checked to fit when this was made.
        let ticket_len = u32::try_from(self.ticket.len()).unwrap_or(u32::MAX);
        let mut out = [0; FIXED_LEN];
        let (head, rest) = out.split_at_mut(HEAD_LEN);
        let (middle, tail) = rest.split_at_mut(SEALED_LEN);
        head.copy_from_slice(&(u64::from(VERSION) << 32).to_be_bytes());
        middle.copy_from_slice(&sealed);
        tail.copy_from_slice(&(u64::from(self.kvno) << 32 | u64::from(ticket_len)).to_be_bytes());
        out
    }
}

fn words(bytes: &[u8; SEALED_LEN]) -> [u32; SEALED_LEN / 4] {
    let mut out = [0; SEALED_LEN / 4];
    for (word, bytes) in out.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    out
}
