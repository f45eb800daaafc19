//! First frames of both ends: version, nonces, limits.

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use crate::capability::{DriveId, KeyEpoch, Nonce};

/// First word of both first frames: "AFSD". What begins otherwise is not this protocol.
pub const MAGIC: u32 = 0x4146_5344;
/// The version of the protocol. A drive that does not speak the version that it gets says goodbye.
pub const VERSION: u32 = 1;

/// First frame of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello {
    /// The version that the client speaks.
    pub version: u32,
    /// New for each connection.
    pub nonce: Nonce,
}

/// First frame of a drive, the reply to [`Hello`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Welcome {
    /// The version that both speak from now on.
    pub version: u32,
    /// New for each connection.
    pub nonce: Nonce,
    /// The drive.
    pub drive: DriveId,
    /// Its present key.
    pub epoch: KeyEpoch,
    /// Most requests in progress on this connection.
    pub requests_max: u32,
    /// Most handles on this connection; handles have smaller numbers.
    pub handles_max: u32,
    /// Bytes of a store that the client may send before the drive gives more credit.
    pub store_credit: u32,
}

impl Encode for Hello {
    fn encode(&self, out: &mut Vec<u8>) {
        MAGIC.encode(out);
        self.version.encode(out);
        out.extend_from_slice(&self.nonce.0);
    }
}

impl Decode for Hello {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        magic(r)?;
        Ok(Self { version: r.u32()?, nonce: Nonce(*r.array()?) })
    }
}

impl Encode for Welcome {
    fn encode(&self, out: &mut Vec<u8>) {
        MAGIC.encode(out);
        self.version.encode(out);
        out.extend_from_slice(&self.nonce.0);
        self.drive.encode(out);
        self.epoch.encode(out);
        self.requests_max.encode(out);
        self.handles_max.encode(out);
        self.store_credit.encode(out);
    }
}

impl Decode for Welcome {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        magic(r)?;
        Ok(Self {
            version: r.u32()?,
            nonce: Nonce(*r.array()?),
            drive: Decode::decode(r)?,
            epoch: Decode::decode(r)?,
            requests_max: r.u32()?,
            handles_max: r.u32()?,
            store_credit: r.u32()?,
        })
    }
}

fn magic(r: &mut Reader<'_>) -> Result<(), DecodeError> {
    match r.u32()? {
        MAGIC => Ok(()),
        value => Err(DecodeError::BadValue { what: "beginning of the data path's protocol", value }),
    }
}
