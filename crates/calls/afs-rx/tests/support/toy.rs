//! Security class for tests: it adds bytes, verifies them, and authenticates the client with a challenge.

use afs_rx::{
    Challenge, ClientSecurity, Identity, Instant, Overhead, PacketContext, PacketSecurity, Proof, Response,
    SecurityError, ServerSecurity, ServerSession, Verified,
};
use bytes::Bytes;
use std::sync::Arc;

pub const INDEX: u8 = 2;
pub const BROKEN: SecurityError = SecurityError { code: 19270408 };

/// Data xor'ed with the key, between a header with its position and padding to eight bytes.
#[derive(Clone)]
pub struct Toy {
    pub key: u8,
    nonce: [u8; 4],
    proven: bool,
    /// Data is left unchanged: the class authenticates the client once, and protects no packet.
    keeps: bool,
    /// The key of another client, which may authenticate as well.
    other: Option<u8>,
}

pub struct ToyClient(pub Toy);
pub struct ToySession(pub Toy);
pub struct ToyServer(pub u8);
/// Offers the class at the level that leaves packets as they are.
pub struct ToyClearServer(pub u8);
/// Offers the class to two clients, each with a key.
pub struct ToyServerOfTwo(pub u8, pub u8);

const HEADER: usize = 8;

impl Toy {
    pub fn new(key: u8) -> Self {
        Toy { key, nonce: [0; 4], proven: false, keeps: false, other: None }
    }

    /// The class at a level that leaves packets as they are.
    pub fn clear(key: u8) -> Self {
        Toy { keeps: true, ..Toy::new(key) }
    }

    fn checksum(&self, packet: &PacketContext) -> u16 {
        let mixed = packet.epoch.0 ^ packet.cid_and_channel ^ packet.call.rotate_left(9) ^ packet.seq;
        (mixed as u16 ^ u16::from(self.key)) | u16::from(packet.from_client) | 0x8000
    }
}

fn seal(toy: &Toy, packet: &PacketContext, payload: &mut Vec<u8>) -> u16 {
    let len = (payload.len() - HEADER) as u32;
    payload[..4].copy_from_slice(&len.to_be_bytes());
    payload[4..8].copy_from_slice(&packet.seq.to_be_bytes());
    payload.resize(payload.len().next_multiple_of(8), 0);
    payload.iter_mut().for_each(|byte| *byte ^= toy.key);
    toy.checksum(packet)
}

fn open(toy: &Toy, packet: &PacketContext, payload: &[u8]) -> Result<Bytes, SecurityError> {
    let clear: Vec<u8> = payload.iter().map(|byte| byte ^ toy.key).collect();
    let head = clear.get(..HEADER).ok_or(BROKEN)?;
    let len = u32::from_be_bytes(head[..4].try_into().map_err(|_| BROKEN)?) as usize;
    let same_seq = head[4..] == packet.seq.to_be_bytes();
    if packet.checksum != toy.checksum(packet) || !same_seq || len > clear.len() - HEADER {
        return Err(BROKEN);
    }
    Ok(Bytes::from(clear).slice(HEADER..HEADER + len))
}

macro_rules! packets {
    ($half:ident) => {
        impl PacketSecurity for $half {
            fn index(&self) -> u8 {
                INDEX
            }
            fn overhead(&self) -> Overhead {
                match self.0.keeps {
                    true => Overhead::default(),
                    false => Overhead { header: HEADER, trailer: 8 },
                }
            }
            fn keeps_data(&self) -> bool {
                self.0.keeps
            }
            fn seal(&self, packet: &PacketContext, payload: &mut Vec<u8>) -> Result<u16, SecurityError> {
                match self.0.keeps {
                    true => Ok(0),
                    false => Ok(seal(&self.0, packet, payload)),
                }
            }
            fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
                match self.0.keeps {
                    true => Ok(payload),
                    false => open(&self.0, packet, &payload),
                }
            }
        }
    };
}

packets!(ToyClient);
packets!(ToySession);

impl ClientSecurity for ToyClient {
    fn respond(&mut self, challenge: &Challenge<'_>) -> Result<Response, SecurityError> {
        let mut payload: Vec<u8> = challenge.payload.iter().map(|byte| byte ^ self.0.key).collect();
        payload.extend(challenge.call_numbers.into_iter().flat_map(u32::to_be_bytes));
        Ok(Response { payload, checksum: 0 })
    }
}

impl ServerSecurity for ToyServer {
    fn index(&self) -> u8 {
        INDEX
    }
    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(ToySession(Toy::new(self.0)))
    }
}

impl ServerSecurity for ToyClearServer {
    fn index(&self) -> u8 {
        INDEX
    }
    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(ToySession(Toy::clear(self.0)))
    }
}

impl ServerSecurity for ToyServerOfTwo {
    fn index(&self) -> u8 {
        INDEX
    }
    fn accept(&mut self) -> Box<dyn ServerSession> {
        Box::new(ToySession(Toy { other: Some(self.1), ..Toy::new(self.0) }))
    }
}

impl ServerSession for ToySession {
    fn is_authenticated(&self, _: Instant) -> bool {
        self.0.proven
    }
    fn challenge(&mut self, _: Instant, random: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
        random(&mut self.0.nonce);
        self.0.nonce.to_vec()
    }
    fn verify(&mut self, proof: &Proof<'_>) -> Result<Verified, SecurityError> {
        let (answer, numbers) = proof.payload.split_at_checked(4).ok_or(BROKEN)?;
        let answers = |key: &u8| self.0.nonce.iter().zip(answer).all(|(asked, byte)| asked ^ key == *byte);
        let key = [Some(self.0.key), self.0.other].into_iter().flatten().find(answers).ok_or(BROKEN)?;
        if answer.len() != 4 || numbers.len() != 16 {
            return Err(BROKEN);
        }
        self.0.key = key;
        self.0.proven = true;
        let number =
            |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
        Ok(Verified { call_numbers: Some([number(0), number(4), number(8), number(12)]) })
    }
    fn identity(&self) -> Option<Identity> {
        self.0.proven.then(|| Arc::new("friend") as Identity)
    }
}
