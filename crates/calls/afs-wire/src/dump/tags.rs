//! Table of tags and the forms of their values. Source: `docs/protocol/dump.md` "2. Tags" and "6. Reserved extension
//! scheme".

/// A part of a dump that has tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Dump,
    Volume,
    Vnode,
}

/// Form of an item's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// This many bytes.
    Fixed(usize),
    /// Text that ends with a NUL.
    Text,
    /// A count of 16 bits, and that many numbers of 32 bits.
    Array,
    /// A length of 32 bits, before data.
    Length32,
    /// A length of 64 bits, before data.
    Length64,
    /// A length of 64 bits, before pieces of data with holes between them.
    Sparse,
    /// A length in as many bytes as its first byte tells, before a value to be skipped.
    Length,
}

/// Treatment of a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tag {
    /// Its value is kept.
    Known(Form),
    /// Its value is skipped.
    Unknown(Form),
    /// The tag after it must be a known one.
    Critical,
}

const BYTE: Form = Form::Fixed(1);
const SHORT: Form = Form::Fixed(2);
const INT: Form = Form::Fixed(4);
const ACL: Form = Form::Fixed(crate::acl::BLOCK_LEN);

/// Data with holes: an extension, preceded by a mark that makes it critical.
pub(super) const SPARSE_TAG: u8 = b'H';
/// Nanoseconds of the two times of a vnode: an extension, which others skip.
pub(super) const CLIENT_NANOS_TAG: u8 = b'x';
pub(super) const SERVER_NANOS_TAG: u8 = b'y';
/// Seconds and nanoseconds of the time of change of a vnode that users are shown: an extension, which others skip.
pub(super) const CHANGE_TIME_TAG: u8 = b'z';
pub(super) const CHANGE_NANOS_TAG: u8 = b'w';
/// The tag after it must be a known one.
pub(super) const CRITICAL: u8 = 0x7e;

/// `None` if the byte is not a tag.
pub(super) fn tag(section: Section, tag: u8) -> Option<Tag> {
    match known(section, tag) {
        Some(form) => Some(Tag::Known(form)),
        None => unknown(tag),
    }
}

fn known(section: Section, tag: u8) -> Option<Form> {
    match (section, tag) {
        (Section::Dump, b'v') => Some(INT),
        (Section::Dump | Section::Volume, b'n') | (Section::Volume, b'O' | b'M') => Some(Form::Text),
        (Section::Dump, b't') | (Section::Volume, b'W') => Some(Form::Array),
        (Section::Volume, b's' | b'b' | b't') | (Section::Vnode, b't') => Some(BYTE),
        (Section::Volume, tag) if b"ivupcqmdfaoCAUEBDZV".contains(&tag) => Some(INT),
        (Section::Vnode, b'l' | b'b') => Some(SHORT),
        (Section::Vnode, tag) if b"vmaogpsuxyzw".contains(&tag) => Some(INT),
        (Section::Vnode, b'A') => Some(ACL),
        (Section::Vnode, b'f') => Some(Form::Length32),
        (Section::Vnode, b'h') => Some(Form::Length64),
        (Section::Vnode, SPARSE_TAG) => Some(Form::Sparse),
        _ => None,
    }
}

fn unknown(tag: u8) -> Option<Tag> {
    match tag {
        super::FIRST_TAG..=0x60 => Some(Tag::Unknown(Form::Length)),
        0x61..=0x7a => Some(Tag::Unknown(INT)),
        0x7b..=0x7d => Some(Tag::Unknown(Form::Fixed(0))),
        CRITICAL => Some(Tag::Critical),
        _ => None,
    }
}
