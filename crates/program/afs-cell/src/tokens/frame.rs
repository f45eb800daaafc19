//! Codec of the requests and replies of a mount's token socket.

use super::kept::{KeptToken, LEN_MAX};
use super::messages::{Settle, TokenReply, TokenRequest};
use super::session::SessionId;
use crate::socket::frame::{damaged, read_frame, write_frame};
use crate::socket::{ReplyFrame, RequestFrame};
use afs_venus::{PinOptions, UnsavedPiece};
use afs_wire::ids::CellName;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;

/// Longest request, in bytes: one token.
const REQUEST_LEN_MAX: usize = LEN_MAX + 64;
/// Longest path of a request, in bytes: the kernel's bound.
const PATH_LEN_MAX: usize = 4096;
/// Longest reply, in bytes: a list of all cells that a mount can know.
const REPLY_LEN_MAX: usize = 1 << 20;
/// Longest name and value of a property together, in bytes: the kernel's bound of an extended attribute's value, and a long name.
const PROPERTY_LEN_MAX: usize = 72 << 10;
/// Most ranks of a request.
const RANKS_MAX: usize = 1024;

impl RequestFrame for TokenRequest {
    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let session = |session: &Option<SessionId>| session.map_or(Vec::new(), |id| id.0.to_vec());
        match self {
            Self::Set { session: of, token } => {
                let (of, token) = (session(of), token.encode());
                write_frame(to, 1, &[&[of.len() as u8], &of, &token], REQUEST_LEN_MAX)
            }
            Self::Remove { session: of, cell } => {
                let (of, cell) = (session(of), cell.as_ref().map_or("", |cell| cell.as_str()));
                write_frame(to, 2, &[&[of.len() as u8], &of, cell.as_bytes()], REQUEST_LEN_MAX)
            }
            Self::List { session: of } => {
                let of = session(of);
                write_frame(to, 3, &[&[of.len() as u8], &of], REQUEST_LEN_MAX)
            }
            Self::Cells => write_frame(to, 4, &[], REQUEST_LEN_MAX),
            Self::Explain { session: of, path } => {
                let of = session(of);
                write_frame(to, 5, &[&[of.len() as u8], &of, path], PATH_LEN_MAX + 64)
            }
            Self::Activity { checks_servers } => {
                write_frame(to, 6, &[&[u8::from(*checks_servers)]], REQUEST_LEN_MAX)
            }
            Self::Unsaved { after } => write_frame(to, 7, &[&after.to_be_bytes()], REQUEST_LEN_MAX),
            Self::UnsavedPiece { number, offset } => {
                write_frame(to, 8, &[&number.to_be_bytes(), &offset.to_be_bytes()], REQUEST_LEN_MAX)
            }
            Self::SettleUnsaved { number, how } => {
                let how = u8::from(*how == Settle::Discard);
                write_frame(to, 9, &[&number.to_be_bytes(), &[how]], REQUEST_LEN_MAX)
            }
            Self::Pin { session: of, options, path } => {
                let of = session(of);
                let options = u8::from(options.is_recursive) | u8::from(options.is_offline) << 1;
                write_frame(to, 10, &[&[of.len() as u8], &of, &[options], path], PATH_LEN_MAX + 64)
            }
            Self::Unpin { path } => write_frame(to, 11, &[path], PATH_LEN_MAX + 64),
            Self::Pins { after } => write_frame(to, 12, &[&after.to_be_bytes()], REQUEST_LEN_MAX),
            Self::AddCell { cell } => write_frame(to, 13, &[cell.to_string().as_bytes()], REQUEST_LEN_MAX),
            Self::SetRanks { ranks } => {
                let rank = |(address, rank): &(Ipv4Addr, u16)| {
                    let [a, b, c, d] = address.octets();
                    let [high, low] = rank.to_be_bytes();
                    [a, b, c, d, high, low]
                };
                let all: Vec<u8> = ranks.iter().flat_map(rank).collect();
                write_frame(to, 14, &[&all], REQUEST_LEN_MAX)
            }
            Self::Property { session: of, inode, name, value } => {
                let (of, inode) = (session(of), inode.to_be_bytes());
                let length = u16::try_from(name.len()).map_err(|_| damaged("too long"))?.to_be_bytes();
                let (sets, value) = (u8::from(value.is_some()), value.as_deref().unwrap_or_default());
                let parts = [&[of.len() as u8][..], &of, &inode, &length, name, &[sets], value];
                write_frame(to, 15, &parts, PROPERTY_LEN_MAX)
            }
        }
    }

    fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let Some((kind, body)) = read_frame(from, REQUEST_LEN_MAX.max(PROPERTY_LEN_MAX))? else {
            return Ok(None);
        };
        let body = zeroize::Zeroizing::new(body);
        if kind != 15 && body.len() >= REQUEST_LEN_MAX {
            return Err(damaged("too long"));
        }
        if kind == 4 && body.is_empty() {
            return Ok(Some(Self::Cells));
        }
        if kind == 6 {
            return match body[..] {
                [checks @ 0..=1] => Ok(Some(Self::Activity { checks_servers: checks == 1 })),
                _ => Err(damaged("not a request")),
            };
        }
        if (7..=9).contains(&kind) {
            return of_unsaved(kind, &body).map(Some).ok_or_else(|| damaged("not a request"));
        }
        if kind == 11 && body.len() <= PATH_LEN_MAX {
            return Ok(Some(Self::Unpin { path: body.to_vec() }));
        }
        if kind == 12 {
            let after = body[..].try_into().map_err(|_| damaged("not a request"))?;
            return Ok(Some(Self::Pins { after: u64::from_be_bytes(after) }));
        }
        if kind == 13 || kind == 14 {
            return of_cells(kind, &body).map(Some).ok_or_else(|| damaged("not a request"));
        }
        let (session, rest) = split_session(&body)?;
        match kind {
            1 => {
                let token = KeptToken::decode(rest).map_err(|_| damaged("not a token"))?;
                Ok(Some(Self::Set { session, token: Box::new(token) }))
            }
            2 if rest.is_empty() => Ok(Some(Self::Remove { session, cell: None })),
            2 => {
                let name = std::str::from_utf8(rest).ok().and_then(|name| CellName::new(name).ok());
                Ok(Some(Self::Remove { session, cell: Some(name.ok_or_else(|| damaged("not a cell"))?) }))
            }
            3 if rest.is_empty() => Ok(Some(Self::List { session })),
            5 if rest.len() <= PATH_LEN_MAX => Ok(Some(Self::Explain { session, path: rest.to_vec() })),
            10 => match rest.split_first() {
                Some((flags @ 0..=3, path)) if path.len() <= PATH_LEN_MAX => {
                    let options = PinOptions { is_recursive: flags & 1 != 0, is_offline: flags & 2 != 0 };
                    Ok(Some(Self::Pin { session, options, path: path.to_vec() }))
                }
                _ => Err(damaged("not a request")),
            },
            15 => of_property(session, rest).ok_or_else(|| damaged("not a request")).map(Some),
            _ => Err(damaged("not a request")),
        }
    }
}

/// A request for a property, without its session.
fn of_property(session: Option<SessionId>, body: &[u8]) -> Option<TokenRequest> {
    let (inode, rest) = body.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<2>()?;
    let (name, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    let value = match rest.split_first()? {
        (0, []) => None,
        (1, value) => Some(value.to_vec()),
        _ => return None,
    };
    Some(TokenRequest::Property { session, inode: u64::from_be_bytes(*inode), name: name.to_vec(), value })
}

/// A request about unsaved data.
fn of_unsaved(kind: u8, body: &[u8]) -> Option<TokenRequest> {
    let (first, rest) = body.split_first_chunk::<8>()?;
    let first = u64::from_be_bytes(*first);
    match (kind, rest) {
        (7, []) => Some(TokenRequest::Unsaved { after: first }),
        (8, _) => {
            let offset = u64::from_be_bytes(rest.try_into().ok()?);
            Some(TokenRequest::UnsavedPiece { number: first, offset })
        }
        (9, [0]) => Some(TokenRequest::SettleUnsaved { number: first, how: Settle::Retry }),
        (9, [1]) => Some(TokenRequest::SettleUnsaved { number: first, how: Settle::Discard }),
        _ => None,
    }
}

/// A request about cells and their servers.
fn of_cells(kind: u8, body: &[u8]) -> Option<TokenRequest> {
    if kind == 13 {
        let cell = std::str::from_utf8(body).ok()?.parse().ok()?;
        return Some(TokenRequest::AddCell { cell });
    }
    let (all, []) = body.as_chunks::<6>() else { return None };
    let rank =
        |&[a, b, c, d, high, low]: &[u8; 6]| (Ipv4Addr::from([a, b, c, d]), u16::from_be_bytes([high, low]));
    (all.len() <= RANKS_MAX).then(|| TokenRequest::SetRanks { ranks: all.iter().map(rank).collect() })
}

fn split_session(body: &[u8]) -> io::Result<(Option<SessionId>, &[u8])> {
    match body.split_first() {
        Some((0, rest)) => Ok((None, rest)),
        Some((16, rest)) => match rest.split_first_chunk::<16>() {
            Some((id, rest)) => Ok((Some(SessionId(*id)), rest)),
            None => Err(damaged("not a session")),
        },
        _ => Err(damaged("not a session")),
    }
}

impl ReplyFrame for TokenReply {
    fn refused(line: String) -> Self {
        Self::Refused(line)
    }

    fn write(&self, to: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Done => write_frame(to, 0, &[], REPLY_LEN_MAX),
            Self::Tokens(tokens) => write_frame(to, 1, &[&serde_json::to_vec(tokens)?], REPLY_LEN_MAX),
            Self::Refused(line) => write_frame(to, 2, &[line.as_bytes()], REPLY_LEN_MAX),
            Self::Cells(cells) => write_frame(to, 3, &[&serde_json::to_vec(cells)?], REPLY_LEN_MAX),
            Self::Explained(told) => write_frame(to, 4, &[&serde_json::to_vec(told)?], REPLY_LEN_MAX),
            Self::Activity(told) => write_frame(to, 5, &[&serde_json::to_vec(told)?], REPLY_LEN_MAX),
            Self::Unsaved(told) => write_frame(to, 6, &[&serde_json::to_vec(told)?], REPLY_LEN_MAX),
            Self::UnsavedPiece(piece) => {
                write_frame(to, 7, &[&piece.at.to_be_bytes(), &piece.bytes], REPLY_LEN_MAX)
            }
            Self::Pins(told) => write_frame(to, 8, &[&serde_json::to_vec(told)?], REPLY_LEN_MAX),
            Self::Waiting(line) => write_frame(to, 9, &[line.as_bytes()], REPLY_LEN_MAX),
            Self::Value(value) => write_frame(to, 10, &[value], REPLY_LEN_MAX),
            Self::Errno(error) => write_frame(to, 11, &[&error.to_be_bytes()], REPLY_LEN_MAX),
        }
    }

    fn read(from: &mut impl Read) -> io::Result<Self> {
        let (kind, body) = read_frame(from, REPLY_LEN_MAX)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        match kind {
            0 if body.is_empty() => Ok(Self::Done),
            1 => Ok(Self::Tokens(serde_json::from_slice(&body)?)),
            2 => Ok(Self::Refused(String::from_utf8_lossy(&body).into_owned())),
            3 => Ok(Self::Cells(serde_json::from_slice(&body)?)),
            4 => Ok(Self::Explained(serde_json::from_slice(&body)?)),
            5 => Ok(Self::Activity(serde_json::from_slice(&body)?)),
            6 => Ok(Self::Unsaved(serde_json::from_slice(&body)?)),
            7 => {
                let (at, bytes) = body.split_first_chunk::<8>().ok_or_else(|| damaged("not a piece"))?;
                let at = u64::from_be_bytes(*at);
                Ok(Self::UnsavedPiece(UnsavedPiece { at, bytes: bytes.to_vec() }))
            }
            8 => Ok(Self::Pins(serde_json::from_slice(&body)?)),
            9 => Ok(Self::Waiting(String::from_utf8_lossy(&body).into_owned())),
            10 => Ok(Self::Value(body)),
            11 => {
                let error = body[..].try_into().map_err(|_| damaged("not an error"))?;
                Ok(Self::Errno(i32::from_be_bytes(error)))
            }
            _ => Err(damaged("not a reply")),
        }
    }
}

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing {
    use super::*;

    /// Frames of the longer requests: a token, a property that is set.
    pub(crate) fn samples() -> [Vec<u8>; 2] {
        let (session, token) =
            (Some(SessionId([7; 16])), Box::new(super::super::samples::kept("example.org", 99)));
        let (name, value) = (b"afs.acl".to_vec(), Some(b"1\n0\nalice 127\n".to_vec()));
        let property = TokenRequest::Property { session, inode: 7, name, value };
        [TokenRequest::Set { session, token }, property].map(|request| {
            let mut wire = Vec::new();
            let _ = request.write(&mut wire);
            wire
        })
    }

    /// Decodes bytes as a request and as a reply, and checks that a decoded value survives encoding and decoding.
    pub(crate) fn read(mut wire: &[u8]) {
        if let Ok(Some(request)) = TokenRequest::read(&mut &*wire) {
            let mut again = Vec::new();
            assert!(request.write(&mut again).is_ok(), "a request that was read can be sent");
            assert_eq!(TokenRequest::read(&mut &*again).ok(), Some(Some(request)));
        }
        if let Ok(answer) = TokenReply::read(&mut wire) {
            let mut again = Vec::new();
            // Invalid UTF-8 becomes longer when it is replaced.
            if answer.write(&mut again).is_ok() {
                assert_eq!(TokenReply::read(&mut &*again).ok(), Some(answer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::{CellLocation, HeldToken, MountLocation};
    use super::super::samples::kept;
    use super::*;

    #[test]
    fn questions_and_answers_go_through() {
        let session = Some(SessionId([7; 16]));
        let token = Box::new(kept("example.org", 99));
        let cell = Some(token.cell.clone());
        let pin = |is_recursive, is_offline| PinOptions { is_recursive, is_offline };
        for request in [
            TokenRequest::Set { session, token: token.clone() },
            TokenRequest::Set { session: None, token },
            TokenRequest::Remove { session, cell },
            TokenRequest::Remove { session: None, cell: None },
            TokenRequest::List { session },
            TokenRequest::Cells,
            TokenRequest::Explain { session, path: b"a/\xff".to_vec() },
            TokenRequest::Explain { session: None, path: Vec::new() },
            TokenRequest::Activity { checks_servers: true },
            TokenRequest::Activity { checks_servers: false },
            TokenRequest::Unsaved { after: 7 },
            TokenRequest::UnsavedPiece { number: 7, offset: 1 << 40 },
            TokenRequest::SettleUnsaved { number: 7, how: Settle::Retry },
            TokenRequest::SettleUnsaved { number: 8, how: Settle::Discard },
            TokenRequest::Pin { session, options: pin(true, false), path: b"a/\xff".to_vec() },
            TokenRequest::Pin { session, options: pin(false, true), path: b"a".to_vec() },
            TokenRequest::Pin { session: None, options: pin(true, true), path: vec![b'x'; PATH_LEN_MAX] },
            TokenRequest::Unpin { path: Vec::new() },
            TokenRequest::Pins { after: 7 },
            TokenRequest::AddCell { cell: "example.org=192.0.2.1,192.0.2.2:7100".parse().unwrap() },
            TokenRequest::SetRanks { ranks: vec![(Ipv4Addr::LOCALHOST, 5000), ([192, 0, 2, 1].into(), 0)] },
            TokenRequest::SetRanks { ranks: vec![] },
            TokenRequest::Property { session, inode: u64::MAX, name: b"afs.acl".to_vec(), value: None },
            TokenRequest::Property {
                session: None,
                inode: 1,
                name: b"afs.\xff".to_vec(),
                value: Some(Vec::new()),
            },
            TokenRequest::Property {
                session,
                inode: 1,
                name: vec![b'x'; 4096],
                value: Some(vec![7; 64 << 10]),
            },
        ] {
            let mut wire = Vec::new();
            request.write(&mut wire).unwrap();
            assert_eq!(TokenRequest::read(&mut &*wire).unwrap(), Some(request));
        }
        let held = HeldToken {
            cell: "example.org".into(),
            user: "alice".into(),
            without: vec!["alice:project".into()],
            expires: Some(9),
        };
        let cell = CellName::new("example.org").unwrap();
        let mount = MountLocation { directory: "/a".into(), device: "0:7".into(), pid: 1, serves: false };
        let place =
            CellLocation { cell, servers: vec![Ipv4Addr::LOCALHOST], base_port: 7000, mount: Some(mount) };
        for answer in [
            TokenReply::Done,
            TokenReply::Tokens(vec![held]),
            TokenReply::Cells(vec![place]),
            TokenReply::Activity(Box::new(afs_venus::Activity { at_micros: 7, ..Default::default() })),
            TokenReply::Unsaved(vec![]),
            TokenReply::Pins(vec![]),
            TokenReply::UnsavedPiece(UnsavedPiece { at: 1 << 40, bytes: vec![7; 48 << 10] }),
            TokenReply::Waiting("for a server".into()),
            TokenReply::Value(vec![7; 64 << 10]),
            TokenReply::Value(Vec::new()),
            TokenReply::Errno(13),
            TokenReply::Refused("no".into()),
        ] {
            let mut wire = Vec::new();
            answer.write(&mut wire).unwrap();
            assert_eq!(TokenReply::read(&mut &*wire).unwrap(), answer);
        }
    }

    #[test]
    fn damage_is_an_error() {
        for wire in [
            &b"\0\0\0\x01\x01"[..],
            b"\0\0\0\x02\x03\x07",
            b"\0\0\0\x03\x02\0/",
            b"\0\0\0\x01\x09",
            b"\0\0\0\x02\x06\x02",
            b"\0\0\0\x02\x07\0",
            b"\0\0\0\x0a\x09\0\0\0\0\0\0\0\x01\x02",
            b"\0\0\0\x05\x0da.b=",
            b"\0\0\0\x04\x0e\x7f\0\0",
            // A property: too short, a name beyond the end, a value of one that is read, neither read nor set.
            b"\0\0\0\x0a\x0f\0\0\0\0\0\0\0\0\x01",
            b"\0\0\0\x0e\x0f\0\0\0\0\0\0\0\0\x01\0\x02\x61\0",
            b"\0\0\0\x0f\x0f\0\0\0\0\0\0\0\0\x01\0\x01\x61\0\x62",
            b"\0\0\0\x0e\x0f\0\0\0\0\0\0\0\0\x01\0\x01\x61\x02",
        ] {
            assert!(TokenRequest::read(&mut &*wire).is_err(), "{wire:?}");
        }
        assert!(TokenReply::read(&mut &b"\0\0\0\x02\x01x"[..]).is_err());
        assert!(TokenReply::read(&mut &b"\0\0\0\x02\x0bx"[..]).is_err());
    }
}
