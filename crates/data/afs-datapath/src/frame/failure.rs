//! Why a request failed, and why an end closes a connection.

use afs_wire::xdr::{Decode, DecodeError, Encode, Reader};

use crate::capability::Refusal;

/// Why a drive did not do what a request asked for. Nothing was changed. The connection continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Failure {
    /// The capability does not permit it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was presented under this handle.
    #[error("no capability was presented under this handle")]
    NoHandle,
    /// The file has another version than the one that was asked for.
    #[error("the file has another version")]
    OtherVersion,
    /// There is no such file on the drive.
    #[error("there is no such file on the drive")]
    NoObject,
    /// The volume is off line, or does not serve clients in this way now.
    #[error("the volume is not available by the data path")]
    Unavailable,
    /// The drive has too much to do. Worth another attempt later.
    #[error("the drive is busy")]
    Busy,
    /// The quota or the partition is used up.
    #[error("there is no space for the bytes")]
    NoSpace,
    /// The bytes could not be read or written.
    #[error("the drive could not read or write the bytes")]
    Io,
    /// The ranges are not as they must be.
    #[error("the ranges of the request are wrong")]
    Invalid,
    /// The client took or gave no bytes for too long.
    #[error("the request made no progress")]
    Stalled,
    /// The drive was started again since the chunks were written, before they were durable.
    #[error("the drive was started again since the chunks were written")]
    Forgotten,
    /// The bytes of a chunk are not those that were written.
    #[error("the chunk is damaged")]
    Damaged,
    /// A chunk is not staged, or not under this tag: nobody wrote it, it was claimed before, or forgotten.
    #[error("a chunk is not staged under this tag, or was claimed before")]
    NotStaged,
}

/// All failures that are no refusals, in the order of their numbers on the wire.
const FAILURES: [Failure; 12] = [
    Failure::NoHandle,
    Failure::OtherVersion,
    Failure::NoObject,
    Failure::Unavailable,
    Failure::Busy,
    Failure::NoSpace,
    Failure::Io,
    Failure::Invalid,
    Failure::Stalled,
    Failure::Forgotten,
    Failure::Damaged,
    Failure::NotStaged,
];

/// Number of the first refusal, and of the first other failure.
const REFUSALS: u32 = 1;
const OTHERS: u32 = 32;

/// The number of `value` in a list that begins with `first`.
fn number<T: PartialEq>(list: &[T], first: u32, value: &T) -> u32 {
    list.iter().zip(first..).find(|(item, _)| *item == value).map_or(0, |(_, number)| number)
}

/// The value of a number in a list that begins with `first`.
fn value<T: Copy>(list: &[T], first: u32, number: u32) -> Option<T> {
    list.get(usize::try_from(number.checked_sub(first)?).ok()?).copied()
}

impl Encode for Failure {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Refused(refusal) => number(&Refusal::ALL, REFUSALS, refusal).encode(out),
            other => number(&FAILURES, OTHERS, other).encode(out),
        }
    }
}

impl Decode for Failure {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u32()?;
        let refused = value(&Refusal::ALL, REFUSALS, number).map(Self::Refused);
        refused
            .or_else(|| value(&FAILURES, OTHERS, number))
            .ok_or(DecodeError::BadValue { what: "failure of the data path", value: number })
    }
}

/// Why an end closes a connection. All requests on it have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Goodbye {
    /// It has no more use for the connection, or is stopping.
    #[error("the peer has closed the connection")]
    Done,
    /// It does not speak the other's version.
    #[error("the peer does not speak this version of the protocol")]
    Version,
    /// The other end broke the protocol.
    #[error("the peer says that the protocol was violated")]
    Violation,
    /// Nothing was asked for long.
    #[error("the connection was idle")]
    Idle,
}

const GOODBYES: [Goodbye; 4] = [Goodbye::Done, Goodbye::Version, Goodbye::Violation, Goodbye::Idle];

impl Encode for Goodbye {
    fn encode(&self, out: &mut Vec<u8>) {
        number(&GOODBYES, 1, self).encode(out);
    }
}

impl Decode for Goodbye {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u32()?;
        value(&GOODBYES, 1, number)
            .ok_or(DecodeError::BadValue { what: "reason of a goodbye", value: number })
    }
}
