//! Protection of DATA packets with one transport key: `docs/protocol/rxgk.md` "6. Packets (DATA only)".

use afs_rpc::Level;
use afs_rx::{Overhead, PacketContext, SecurityError, Side};
use bytes::{Bytes, BytesMut};

use super::pseudo_header::{self, pseudo_header};
use super::{MasterKey, code, usage};
use crate::crypto::{Confounders, CryptoError, MicKey, OpenKey, SealKey, equal_in_constant_time};

/// Bytes of a confounder.
const CONFOUNDER: usize = 16;

/// The derived keys of one end of a connection for one transport key.
#[derive(Clone, Debug)]
pub enum PacketKeys {
    /// Packets are not protected.
    Clear,
    /// A checksum before the data.
    Auth(Box<AuthKeys>),
    /// Packets are encrypted.
    Crypt(Box<CryptKeys>),
}

/// Checksum keys.
#[derive(Clone, Debug)]
pub struct AuthKeys {
    /// For sending.
    ours: MicKey,
    /// For receiving.
    theirs: MicKey,
}

/// Encryption keys.
#[derive(Clone, Debug)]
pub struct CryptKeys {
    /// For sending.
    ours: SealKey,
    /// For receiving.
    theirs: OpenKey,
}

impl PacketKeys {
    /// The keys that the end on this side derives from a transport key.
    ///
    /// # Errors
    /// None in practice.
    pub fn new(level: Level, transport: &MasterKey, side: Side) -> Result<Self, SecurityError> {
        match level {
            Level::Clear => Ok(Self::Clear),
            Level::Auth => AuthKeys::new(transport, side).map(|keys| Self::Auth(Box::new(keys))),
            Level::Crypt => CryptKeys::new(transport, side).map(|keys| Self::Crypt(Box::new(keys))),
        }
        .map_err(code::of)
    }

    /// Bytes around the data of every packet.
    #[must_use]
    pub fn overhead(&self) -> Overhead {
        match self {
            Self::Clear => Overhead::default(),
            Self::Auth(keys) => Overhead { header: keys.ours.mac_len(), trailer: 0 },
            Self::Crypt(keys) => {
                Overhead { header: CONFOUNDER + pseudo_header::LEN, trailer: keys.ours.mac_len() }
            }
        }
    }

    /// Protects a payload in place. It begins with space for the header of [`PacketKeys::overhead`].
    ///
    /// # Errors
    /// [`code::INCONSISTENCY`] when there is no such space.
    pub fn seal(
        &self,
        packet: &PacketContext,
        payload: &mut Vec<u8>,
        confounders: &Confounders,
    ) -> Result<(), SecurityError> {
        let data_len = payload.len().checked_sub(self.overhead().header).ok_or(code::INCONSISTENCY)?;
        let pseudo = pseudo_header(packet, data_len);
        match self {
            Self::Clear => Ok(()),
            Self::Auth(keys) => {
                let (mic, data) = payload.split_at_mut(keys.ours.mac_len());
                keys.ours.sign(&pseudo, data, mic).map_err(code::of)
            }
            Self::Crypt(keys) => {
                payload[..CONFOUNDER].copy_from_slice(&confounders.next_block());
                payload[CONFOUNDER..CONFOUNDER + pseudo_header::LEN].copy_from_slice(&pseudo);
                payload.resize(payload.len() + keys.ours.mac_len(), 0);
                keys.ours.seal_in_place(payload).map_err(code::of)
            }
        }
    }

    /// Verifies a payload, and returns its data. Works in place when the bytes are not shared.
    ///
    /// # Errors
    /// [`code::PACKET_SHORT`], [`code::SEALED_INCONSISTENT`].
    pub fn open(&self, packet: &PacketContext, payload: Bytes) -> Result<Bytes, SecurityError> {
        match self {
            Self::Clear => Ok(payload),
            Self::Auth(keys) => {
                let mic_len = keys.theirs.mac_len();
                let (mic, data) = payload.split_at_checked(mic_len).ok_or(code::PACKET_SHORT)?;
                keys.theirs.verify(&pseudo_header(packet, data.len()), data, mic).map_err(code::of)?;
                Ok(payload.slice(mic_len..))
            }
            Self::Crypt(keys) => {
                let mut message = match payload.try_into_mut() {
                    Ok(own) => own,
                    Err(shared) => BytesMut::from(&*shared),
                };
                let plain = keys.theirs.open_in_place(&mut message).map_err(code::of)?;
                let message = message.freeze().slice(plain);
                data_of(packet, &message)
            }
        }
    }
}

impl AuthKeys {
    fn new(transport: &MasterKey, side: Side) -> Result<Self, CryptoError> {
        let key = |usage| MicKey::new(transport.enctype(), transport.secret().expose(), usage);
        let (ours, theirs) = by_side(side, usage::CLIENT_MIC_PACKET, usage::SERVER_MIC_PACKET);
        Ok(Self { ours: key(ours)?, theirs: key(theirs)? })
    }
}

impl CryptKeys {
    fn new(transport: &MasterKey, side: Side) -> Result<Self, CryptoError> {
        let (enctype, key) = (transport.enctype(), transport.secret().expose());
        let (ours, theirs) = by_side(side, usage::CLIENT_ENC_PACKET, usage::SERVER_ENC_PACKET);
        Ok(Self { ours: SealKey::new(enctype, key, ours)?, theirs: OpenKey::new(enctype, key, theirs)? })
    }
}

/// Usage numbers for this end, and for the other.
fn by_side(side: Side, client: u32, server: u32) -> (u32, u32) {
    match side {
        Side::Client => (client, server),
        Side::Server => (server, client),
    }
}

/// The data after the pseudo-header, if that is the packet's. There may be padding after the data.
fn data_of(packet: &PacketContext, message: &Bytes) -> Result<Bytes, SecurityError> {
    let (pseudo, data) =
        message.split_first_chunk::<{ pseudo_header::LEN }>().ok_or(code::SEALED_INCONSISTENT)?;
    let expected = pseudo_header(packet, 0);
    let (place, len) = pseudo.split_at(pseudo_header::PLACE_LEN);
    let same = equal_in_constant_time(place, &expected[..pseudo_header::PLACE_LEN]);
    let len = len.iter().fold(0, |len, byte| len << 8 | usize::from(*byte));
    match same && len <= data.len() {
        true => Ok(message.slice(pseudo_header::LEN..pseudo_header::LEN + len)),
        false => Err(code::SEALED_INCONSISTENT),
    }
}
