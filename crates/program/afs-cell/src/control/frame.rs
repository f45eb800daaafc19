//! Codec of the requests and replies of the control socket.

use crate::socket::frame::{damaged, read_frame, write_frame};
use crate::socket::{ReplyFrame, RequestFrame};
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};

/// Longest request, in bytes; calls of the volume and location services are far shorter.
pub(super) const REQUEST_LEN_MAX: usize = 64 * 1024;
/// Longest reply, in bytes: a list of some 60 000 volumes.
pub(super) const REPLY_LEN_MAX: usize = 16 * 1024 * 1024;

/// Kind of the requests about drives.
const DRIVES: u8 = 16;

/// Request of the cell's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRequest {
    /// A call: the service's number, then opcode and arguments as in Rx packets.
    Call {
        /// Number of the service.
        service: u16,
        /// Opcode and arguments.
        call: Vec<u8>,
    },
    /// The cell's statistics.
    Statistics,
    /// The reports of the scrubs.
    Scrub,
    /// Import the databases of another cell: an [`ImportRequest`](crate::servers::ImportRequest) as JSON.
    Import(Vec<u8>),
    /// A request about drives: a [`DriveRequest`](crate::drives::DriveRequest) as JSON.
    Drives(Vec<u8>),
    /// The counters of the data path.
    DataPath,
    /// The states of the partitions.
    Partitions,
}

/// Reply of the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlReply {
    /// The call's results, or a report as JSON.
    Done(Vec<u8>),
    /// The call was aborted with this code.
    Aborted(i32),
    /// The call could not be made: one line for the user.
    Refused(String),
}

/// Counters of a cell's process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Datagrams sent by its servers.
    pub packets_sent: u64,
    /// Datagrams received by its servers.
    pub packets_received: u64,
    /// Processor time, user and system, in microseconds; of the whole process, with a mount in it.
    pub cpu_us: u64,
}

impl RequestFrame for ControlRequest {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Call { service, call } => {
                let service = service.to_be_bytes();
                write_frame(to, 1, &[&service, call], REQUEST_LEN_MAX)
            }
            Self::Statistics => write_frame(to, 2, &[], REQUEST_LEN_MAX),
            Self::Scrub => write_frame(to, 4, &[], REQUEST_LEN_MAX),
            Self::Import(json) => write_frame(to, 5, &[json], REQUEST_LEN_MAX),
            Self::Drives(json) => write_frame(to, DRIVES, &[json], REQUEST_LEN_MAX),
            Self::DataPath => write_frame(to, 6, &[], REQUEST_LEN_MAX),
            Self::Partitions => write_frame(to, 7, &[], REQUEST_LEN_MAX),
        }
    }

    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, body)) = read_frame(from, REQUEST_LEN_MAX)? else { return Ok(None) };
        match (kind, body.split_first_chunk::<2>()) {
            (1, Some((service, call))) => {
                Ok(Some(Self::Call { service: u16::from_be_bytes(*service), call: call.to_vec() }))
            }
            (2, None) if body.is_empty() => Ok(Some(Self::Statistics)),
            (4, None) if body.is_empty() => Ok(Some(Self::Scrub)),
            (5, _) => Ok(Some(Self::Import(body))),
            (DRIVES, _) => Ok(Some(Self::Drives(body))),
            (6, None) if body.is_empty() => Ok(Some(Self::DataPath)),
            (7, None) if body.is_empty() => Ok(Some(Self::Partitions)),
            _ => Err(damaged("not a request")),
        }
    }
}

impl ReplyFrame for ControlReply {
    fn refused(line: String) -> Self {
        Self::Refused(line)
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Done(bytes) => write_frame(to, 0, &[bytes], REPLY_LEN_MAX),
            Self::Aborted(code) => write_frame(to, 1, &[&code.to_be_bytes()], REPLY_LEN_MAX),
            Self::Refused(line) => write_frame(to, 2, &[line.as_bytes()], REPLY_LEN_MAX),
        }
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = read_frame(from, REPLY_LEN_MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match (kind, <[u8; 4]>::try_from(&*body)) {
            (0, _) => Ok(Self::Done(body)),
            (1, Ok(code)) => Ok(Self::Aborted(i32::from_be_bytes(code))),
            (2, _) => Ok(Self::Refused(String::from_utf8_lossy(&body).into_owned())),
            _ => Err(damaged("not a reply")),
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing {
    use super::*;

    /// Decodes bytes as a request and as a reply, and checks that a decoded value survives encoding and decoding.
    pub(crate) fn read(mut wire: &[u8]) {
        if let Ok(Some(request)) = ControlRequest::read(&mut &*wire) {
            let mut again = Vec::new();
            assert!(request.write(&mut again).is_ok(), "a request that was read can be sent");
            assert_eq!(ControlRequest::read(&mut &*again).ok(), Some(Some(request)));
        }
        if let Ok(answer) = ControlReply::read(&mut wire) {
            let mut again = Vec::new();
            // Invalid UTF-8 becomes longer when it is replaced.
            if answer.write(&mut again).is_ok() {
                assert_eq!(ControlReply::read(&mut &*again).ok(), Some(answer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_and_answers_go_through() {
        for request in [
            ControlRequest::Call { service: 52, call: vec![1, 2, 3] },
            ControlRequest::Statistics,
            ControlRequest::Import(b"{}".to_vec()),
            ControlRequest::Drives(b"[]".to_vec()),
            ControlRequest::Scrub,
            ControlRequest::DataPath,
        ] {
            let mut wire = Vec::new();
            request.write(&mut wire).unwrap();
            assert_eq!(ControlRequest::read(&mut &*wire).unwrap(), Some(request));
        }
        let answers = [
            ControlReply::Done(vec![9; 70_000]),
            ControlReply::Aborted(-455),
            ControlReply::Refused("no".into()),
            ControlReply::Done(vec![]),
        ];
        for answer in answers {
            let mut wire = Vec::new();
            answer.write(&mut wire).unwrap();
            assert_eq!(ControlReply::read(&mut &*wire).unwrap(), answer);
        }
    }

    #[test]
    fn damage_is_an_error_and_nothing_large_is_made_for_it() {
        assert_eq!(ControlRequest::read(&mut &b""[..]).unwrap(), None);
        for wire in [
            &b"\0"[..],
            b"\0\0\0\0",
            b"\xff\xff\xff\xff\x01",
            b"\0\0\0\x09\x01\0",
            b"\0\0\0\x01\x01",
            b"\0\0\0\x02\x02x",
        ] {
            assert!(ControlRequest::read(&mut &*wire).is_err(), "{wire:?}");
        }
        for wire in [&b""[..], b"\0\0\0\x02\x01x", b"\0\0\0\x01\x07"] {
            assert!(ControlReply::read(&mut &*wire).is_err(), "{wire:?}");
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_not_sent() {
        let request = ControlRequest::Call { service: 1, call: vec![0; REQUEST_LEN_MAX] };
        assert!(request.write(&mut Vec::new()).is_err());
    }
}
