//! Encoding of stored records: big-endian numbers and counted bytes.

use bytes::Bytes;

/// A stored record that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRecord;

pub(crate) type Decoded<T> = Result<T, BadRecord>;

/// Cursor that decodes a record.
pub(crate) struct Fields(Bytes);

impl Fields {
    pub(crate) fn new(record: Bytes) -> Self {
        Self(record)
    }

    pub(crate) fn u8(&mut self) -> Decoded<u8> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Decoded<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Decoded<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn bytes(&mut self, len: usize) -> Decoded<Bytes> {
        if len > self.0.len() {
            return Err(BadRecord);
        }
        Ok(self.0.split_to(len))
    }

    /// Bytes after a 32-bit count.
    pub(crate) fn counted(&mut self) -> Decoded<Bytes> {
        let len = self.u32()? as usize;
        self.bytes(len)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the record: an error if bytes are left over.
    pub(crate) fn finish(self) -> Decoded<()> {
        if self.0.is_empty() { Ok(()) } else { Err(BadRecord) }
    }

    fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        let array = *self.0.first_chunk::<N>().ok_or(BadRecord)?;
        self.0 = self.0.slice(N..);
        Ok(array)
    }
}

/// Encodes a record.
pub(crate) trait Put {
    fn put_u8(&mut self, value: u8);
    fn put_u32(&mut self, value: u32);
    fn put_u64(&mut self, value: u64);
    fn put_counted(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_be_bytes());
    }

    fn put_counted(&mut self, bytes: &[u8]) {
        self.put_u32(bytes.len() as u32);
        self.extend_from_slice(bytes);
    }
}
