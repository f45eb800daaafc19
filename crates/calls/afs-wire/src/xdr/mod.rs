//! XDR encoding and decoding in AFS's conventions: big-endian, in units of four bytes, every variable length bounded.
//!
//! Small integers take a whole word each. A `char[n]` is `n` words ([`Chars`]); a string or opaque is a count, bytes,
//! padding ([`ByteString`]); an array with a count is a [`BoundedVec`]. Source: `docs/protocol/rx.md` "14. XDR and
//! rxgen conventions".

mod array;
mod bytestring;
mod chars;
mod fixed;
mod reader;
mod word;

pub use array::BoundedVec;
pub use bytestring::ByteString;
pub use chars::Chars;
pub use fixed::Fixed;
pub use reader::{DecodeError, Reader};

/// A value with a wire form.
pub trait Encode {
    /// Appends the wire form to `out`.
    fn encode(&self, out: &mut Vec<u8>);

    /// The wire form by itself.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// A value that can be decoded from its wire form.
pub trait Decode: Sized {
    /// Decodes one value and leaves the reader after it.
    ///
    /// # Errors
    /// [`DecodeError`] when bytes are missing or a value is out of its range. The reader's position is then
    /// unspecified.
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Decodes one value that must fill `bytes` exactly.
    ///
    /// # Errors
    /// As [`Decode::decode`], and [`DecodeError::Trailing`] when bytes are left over.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let value = Self::decode(&mut reader)?;
        reader.finish()?;
        Ok(value)
    }
}

impl Encode for () {
    fn encode(&self, _out: &mut Vec<u8>) {}
}

impl Decode for () {
    fn decode(_r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(())
    }
}

/// A value exceeds its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{got} is more than the {limit} that the protocol allows here")]
pub struct TooLong {
    /// The bound, in bytes or elements.
    pub limit: usize,
    /// The size of the value.
    pub got: usize,
}
