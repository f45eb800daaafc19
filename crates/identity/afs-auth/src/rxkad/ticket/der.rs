//! DER helpers for the structures of RFC 4120: sequences whose fields are tagged by number.

use der::asn1::AnyRef;
use der::{Decode, Encode, Error, ErrorKind, Reader, Result, SliceReader, Tag, TagNumber, Tagged};

/// The fields of a sequence, read in the order of their numbers.
pub(super) struct Fields<'a>(SliceReader<'a>);

impl<'a> Fields<'a> {
    /// The fields of this sequence.
    pub(super) fn of(sequence: AnyRef<'a>) -> Result<Self> {
        sequence.tag().assert_eq(Tag::Sequence)?;
        SliceReader::new(sequence.value()).map(Self)
    }

    /// The fields of the sequence in an APPLICATION element; bytes after it are ignored.
    pub(super) fn of_application(number: u32, bytes: &'a [u8]) -> Result<Self> {
        let element = AnyRef::decode(&mut SliceReader::new(bytes)?)?;
        element.tag().assert_eq(Tag::Application { constructed: true, number: TagNumber(number) })?;
        Self::of(AnyRef::from_der(element.value())?)
    }

    /// The field with this number, if it is present. Fields with lower numbers are skipped.
    pub(super) fn optional<T: Decode<'a, Error = Error>>(&mut self, number: u32) -> Result<Option<T>> {
        while !self.0.is_finished() {
            let Tag::ContextSpecific { constructed: true, number: TagNumber(found) } = Tag::peek(&self.0)?
            else {
                return Err(ErrorKind::Failed.into());
            };
            if found > number {
                return Ok(None);
            }
            let field = AnyRef::decode(&mut self.0)?;
            if found == number {
                return T::from_der(field.value()).map(Some);
            }
        }
        Ok(None)
    }

    /// The field with this number, which must be present.
    pub(super) fn required<T: Decode<'a, Error = Error>>(&mut self, number: u32) -> Result<T> {
        self.optional(number)?.ok_or_else(|| ErrorKind::Failed.into())
    }
}

/// An element with this tag and content.
pub(super) fn element(tag: Tag, content: &[u8]) -> Result<Vec<u8>> {
    AnyRef::new(tag, content)?.to_der()
}

/// A field of a sequence.
pub(super) fn field(number: u32, value: &impl Encode) -> Result<Vec<u8>> {
    element(Tag::ContextSpecific { constructed: true, number: TagNumber(number) }, &value.to_der()?)
}

/// A field whose value is encoded already.
pub(super) fn field_of(number: u32, value: &[u8]) -> Result<Vec<u8>> {
    field(number, &AnyRef::from_der(value)?)
}

/// A sequence of encoded elements.
pub(super) fn sequence(parts: &[Vec<u8>]) -> Result<Vec<u8>> {
    element(Tag::Sequence, &parts.concat())
}
