//! Calls and replies as bytes: a byte for the kind, a number, and what has that length; integers in network order.

use super::call::{Call, FILE_MAX, NAMES_MAX, PATH_MAX, Refusal, ServerNumber, Stamp};
use std::io::{self, Read, Write};

/// A request as it arrives. The data of a store follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) kind: Kind,
    /// Version, length or number of a server.
    pub(super) number: u64,
    pub(super) path: String,
}

/// Kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    TestAuth = 1,
    GetFileStat,
    Fetch,
    Store,
    SetFileStat,
    ListDir,
    MakeDir,
    MakeStub,
}

const KINDS: [Kind; 8] = [
    Kind::TestAuth,
    Kind::GetFileStat,
    Kind::Fetch,
    Kind::Store,
    Kind::SetFileStat,
    Kind::ListDir,
    Kind::MakeDir,
    Kind::MakeStub,
];

impl Request {
    /// A call, whose data have this length.
    pub(super) fn of(path: &str, call: Call<'_>, length: u64) -> Self {
        let (kind, number) = match call {
            Call::TestAuth(stamp) => (Kind::TestAuth, stamp.0),
            Call::GetFileStat => (Kind::GetFileStat, 0),
            Call::Fetch(_) => (Kind::Fetch, 0),
            Call::Store(_) => (Kind::Store, length),
            Call::SetFileStat => (Kind::SetFileStat, 0),
            Call::ListDir => (Kind::ListDir, 0),
            Call::MakeDir => (Kind::MakeDir, 0),
            Call::MakeStub(server) => (Kind::MakeStub, u64::from(server.0)),
        };
        Self { kind, number, path: path.to_owned() }
    }

    /// The bytes.
    ///
    /// # Errors
    /// The path is too long.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Refusal> {
        if self.path.len() > PATH_MAX {
            return Err(Refusal::Long);
        }
        let mut bytes = vec![self.kind as u8];
        bytes.extend(self.number.to_be_bytes());
        bytes.extend((self.path.len() as u16).to_be_bytes());
        bytes.extend(self.path.as_bytes());
        Ok(bytes)
    }

    /// Reads one; `None` where the client has ended.
    ///
    /// # Errors
    /// What arrives is none, or too long.
    pub(super) fn read(from: &mut dyn Read) -> io::Result<Option<Self>> {
        let mut kind = [0];
        if from.read(&mut kind)? == 0 {
            return Ok(None);
        }
        let kind =
            KINDS.into_iter().find(|one| *one as u8 == kind[0]).ok_or_else(|| broken("no such call"))?;
        let number = u64::from_be_bytes(array(from)?);
        let length = usize::from(u16::from_be_bytes(array(from)?));
        if length > PATH_MAX || (kind == Kind::Store && number > FILE_MAX) {
            return Err(broken("a path or a file is too long"));
        }
        if kind == Kind::MakeStub && u32::try_from(number).is_err() {
            return Err(broken("no such server"));
        }
        let mut path = vec![0; length];
        from.read_exact(&mut path)?;
        let path = String::from_utf8(path).map_err(|_| broken("a path is not UTF-8"))?;
        Ok(Some(Self { kind, number, path }))
    }
}

/// The beginning of a reply.
#[derive(Debug)]
pub(super) enum Head {
    Valid(bool),
    Status(Stamp),
    /// Names of so many bytes follow, each ended by a zero.
    Names(u64),
    /// Data of this version and length follow.
    Data(Stamp, u64),
    Refused(Refusal),
}

impl Head {
    pub(super) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        let (kind, number, more) = match self {
            Self::Valid(is_valid) => (0, u64::from(*is_valid), None),
            Self::Status(stamp) => (1, stamp.0, None),
            Self::Names(length) => (2, *length, None),
            Self::Data(stamp, length) => (3, stamp.0, Some(*length)),
            Self::Refused(Refusal::Absent) => (16, 0, None),
            Self::Refused(Refusal::Kind) => (17, 0, None),
            Self::Refused(Refusal::Elsewhere { prefix_components, server }) => {
                (18, *prefix_components as u64, Some(u64::from(server.0)))
            }
            Self::Refused(Refusal::Name) => (19, 0, None),
            Self::Refused(Refusal::Long) => (20, 0, None),
            Self::Refused(Refusal::Io(error)) => {
                (21, error.raw_os_error().map_or(0, |code| u64::from(code.unsigned_abs())), None)
            }
        };
        let mut bytes = vec![kind];
        bytes.extend(number.to_be_bytes());
        bytes.extend(more.into_iter().flat_map(u64::to_be_bytes));
        to.write_all(&bytes)
    }

    /// Reads one.
    ///
    /// # Errors
    /// What arrives is none, or announces too much.
    pub(super) fn read(from: &mut dyn Read) -> io::Result<Self> {
        let [kind] = array(from)?;
        let number = u64::from_be_bytes(array(from)?);
        Ok(match kind {
            0 if number <= 1 => Self::Valid(number == 1),
            1 => Self::Status(Stamp(number)),
            2 if number <= NAMES_MAX => Self::Names(number),
            3 => match u64::from_be_bytes(array(from)?) {
                length @ 0..=FILE_MAX => Self::Data(Stamp(number), length),
                _ => return Err(broken("a file is too long")),
            },
            16 => Self::Refused(Refusal::Absent),
            17 => Self::Refused(Refusal::Kind),
            18 => {
                let server = u32::try_from(u64::from_be_bytes(array(from)?));
                let server = ServerNumber(server.map_err(|_| broken("no such server"))?);
                Self::Refused(Refusal::Elsewhere { prefix_components: number as usize, server })
            }
            19 => Self::Refused(Refusal::Name),
            20 => Self::Refused(Refusal::Long),
            21 => {
                Self::Refused(Refusal::Io(i32::try_from(number).ok().filter(|code| *code > 0).map_or_else(
                    || io::Error::other("the server could not do it"),
                    io::Error::from_raw_os_error,
                )))
            }
            _ => return Err(broken("no such reply")),
        })
    }
}

fn array<const N: usize>(from: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

pub(super) fn broken(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::split_mix::SplitMix;

    /// Bytes whose first is often a kind that there is, and whose numbers are often small.
    fn bytes(random: &mut SplitMix) -> Vec<u8> {
        let first = [(random.next() % 10) as u8, 16 + (random.next() % 7) as u8, random.next() as u8];
        let mut bytes = vec![first[(random.next() % 3) as usize]];
        for _ in 0..random.next() % 64 {
            let is_small = !random.next().is_multiple_of(4);
            bytes.push(if is_small { 0 } else { (random.next() % 256) as u8 });
        }
        bytes
    }

    /// What is read of any bytes is bounded, and is what they say: written again it has the same.
    #[test]
    fn any_bytes_are_refused_or_read_as_they_are() {
        let (mut random, mut requests, mut heads) = (SplitMix::of(1), 0, 0);
        for _ in 0..20_000 {
            let bytes = bytes(&mut random);
            let mut rest = &*bytes;
            if let Ok(Some(request)) = Request::read(&mut rest) {
                assert_eq!(request.bytes().unwrap(), bytes[..bytes.len() - rest.len()]);
                assert!(request.kind != Kind::Store || request.number <= FILE_MAX, "{request:?}");
                requests += 1;
            }
            let mut rest = &*bytes;
            if let Ok(head) = Head::read(&mut rest) {
                let mut again = Vec::new();
                head.write(&mut again).unwrap();
                // A refusal carries a number that nothing needs, and errors that the client has no name for.
                let is_whole =
                    !matches!(&head, Head::Refused(why) if !matches!(why, Refusal::Elsewhere { .. }));
                assert!(again.len() == bytes.len() - rest.len() && (!is_whole || bytes.starts_with(&again)));
                heads += 1;
            }
        }
        assert!(requests > 100 && heads > 100, "{requests} {heads}");
    }

    #[test]
    fn requests_arrive_as_they_were_and_others_are_refused() {
        for kind in KINDS {
            let request = Request { kind, number: 7, path: "usr/file".into() };
            let bytes = request.bytes().unwrap();
            assert_eq!(Request::read(&mut &*bytes).unwrap(), Some(request));
            for cut in 1..bytes.len() {
                assert!(Request::read(&mut &bytes[..cut]).is_err(), "{kind:?} cut at {cut}");
            }
        }
        assert_eq!(Request::read(&mut &[][..]).unwrap(), None);
        let long = Request { kind: Kind::Store, number: FILE_MAX + 1, path: String::new() };
        assert!(Request::read(&mut &*long.bytes().unwrap()).is_err());
        let far = Request { kind: Kind::MakeStub, number: 1 << 32, path: String::new() };
        assert!(Request::read(&mut &*far.bytes().unwrap()).is_err(), "another server than was named");
        let long = Request { kind: Kind::Fetch, number: 0, path: "a".repeat(PATH_MAX + 1) };
        assert!(long.bytes().is_err());
        for bytes in [
            &[0; 11][..],
            &[9; 11],
            &[3, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255],
            &[3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 255],
        ] {
            assert!(Request::read(&mut &*bytes).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn replies_arrive_as_they_were_and_others_are_refused() {
        let (prefix_components, server) = (3, ServerNumber(9));
        let heads = [
            Head::Valid(true),
            Head::Status(Stamp(5)),
            Head::Names(NAMES_MAX),
            Head::Data(Stamp(6), FILE_MAX),
            Head::Refused(Refusal::Absent),
            Head::Refused(Refusal::Kind),
            Head::Refused(Refusal::Elsewhere { prefix_components, server }),
            Head::Refused(Refusal::Name),
            Head::Refused(Refusal::Long),
            Head::Refused(Refusal::Io(io::Error::from_raw_os_error(28))),
        ];
        for head in heads {
            let mut bytes = Vec::new();
            head.write(&mut bytes).unwrap();
            assert_eq!(format!("{:?}", Head::read(&mut &*bytes).unwrap()), format!("{head:?}"));
            for cut in 0..bytes.len() {
                assert!(Head::read(&mut &bytes[..cut]).is_err(), "{head:?} cut at {cut}");
            }
        }
        for head in [Head::Names(NAMES_MAX + 1), Head::Data(Stamp(0), FILE_MAX + 1)] {
            let mut bytes = Vec::new();
            head.write(&mut bytes).unwrap();
            assert!(Head::read(&mut &*bytes).is_err(), "{head:?}");
        }
        assert!(Head::read(&mut &[77; 20][..]).is_err());
    }
}
