//! Exchange of one question and its reply with the servers of DNS: over UDP from a port of its own, and over TCP if the reply does not fit.

use super::message::{Answer, Kind, answer, question};
use afs_rpc::{EnvExt, EnvRef};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Time limit of all exchanges of one look-up.
const LOOK_UP_MAX: Duration = Duration::from_secs(5);
/// How long one server is waited for.
const REPLY_MAX: Duration = Duration::from_millis(1500);
/// How often each server is asked over UDP.
const ROUNDS: usize = 2;
/// Longest reply over UDP that is read; without EDNS none is longer than 512 bytes (RFC 1035, section 4.2.1).
const DATAGRAM_MAX: usize = 4096;
/// Longest reply over TCP that is read.
const STREAM_MAX: usize = 16 << 10;

/// The exchanges of one look-up.
pub(super) struct Exchange<'a> {
    env: &'a EnvRef,
    servers: &'a [SocketAddr],
    until: Instant,
}

impl<'a> Exchange<'a> {
    /// Those of a look-up that begins now.
    pub(super) fn new(env: &'a EnvRef, servers: &'a [SocketAddr]) -> Self {
        Self { env, servers, until: Instant::now() + LOOK_UP_MAX }
    }

    /// Asks for the records of a name, one server after the other.
    ///
    /// # Errors
    /// No server gave a reply in time: why the last one gave none.
    pub(super) fn ask(&self, name: &str, kind: Kind) -> Result<Answer, String> {
        let mut why = "there is no server of DNS".to_owned();
        for _ in 0..ROUNDS {
            for server in self.servers {
                match self.ask_one(*server, name, kind) {
                    Ok(Answer::Refused(reason)) => why = format!("{}: {reason}", server.ip()),
                    Ok(answer) => return Ok(answer),
                    Err(error) => why = format!("{}: {error}", server.ip()),
                }
                if self.left().is_none() {
                    return Err(why);
                }
            }
        }
        Err(why)
    }

    fn ask_one(&self, server: SocketAddr, name: &str, kind: Kind) -> io::Result<Answer> {
        let id = self.env.random_u64() as u16;
        let message = question(id, name, kind).ok_or(io::Error::other("not a name of DNS"))?;
        match self.by_datagram(server, &message, |bytes| answer(bytes, id, name, kind))? {
            Answer::Truncated => {
                let bytes = self.by_stream(server, &message)?;
                let complete = answer(&bytes, id, name, kind).filter(|answer| *answer != Answer::Truncated);
                complete.ok_or(io::Error::other("the reply is none to the question"))
            }
            answer => Ok(answer),
        }
    }

    /// The kernel chooses a port at random, and passes on what comes from the server's address alone; datagrams that are no reply to the
    /// question are passed over.
    fn by_datagram(
        &self,
        server: SocketAddr,
        message: &[u8],
        read: impl Fn(&[u8]) -> Option<Answer>,
    ) -> io::Result<Answer> {
        let any: IpAddr = match server {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(server)?;
        let until = self.until.min(Instant::now() + REPLY_MAX);
        socket.send(message)?;
        let mut bytes = [0; DATAGRAM_MAX];
        loop {
            let left = remaining(until).ok_or(ErrorKind::TimedOut)?;
            socket.set_read_timeout(Some(left))?;
            let length = match socket.recv(&mut bytes) {
                // The same by another name.
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            };
            if let Some(answer) = bytes.get(..length).and_then(&read) {
                return Ok(answer);
            }
        }
    }

    /// A message over TCP has its length in front (RFC 1035, section 4.2.2).
    fn by_stream(&self, server: SocketAddr, message: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect_timeout(&server, self.left().ok_or(ErrorKind::TimedOut)?)?;
        let length = u16::try_from(message.len()).map_err(io::Error::other)?;
        stream.set_write_timeout(Some(self.left().ok_or(ErrorKind::TimedOut)?))?;
        stream.write_all(&[&length.to_be_bytes(), message].concat())?;
        let mut length = [0; 2];
        self.read_all(&mut stream, &mut length)?;
        let length = usize::from(u16::from_be_bytes(length));
        if length > STREAM_MAX {
            return Err(io::Error::other("the reply is too long"));
        }
        let mut bytes = vec![0; length];
        self.read_all(&mut stream, &mut bytes)?;
        Ok(bytes)
    }

    /// Fills a buffer; a server that sends byte after byte gains no time.
    fn read_all(&self, stream: &mut TcpStream, mut bytes: &mut [u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            stream.set_read_timeout(Some(self.left().ok_or(ErrorKind::TimedOut)?))?;
            match stream.read(bytes)? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => bytes = bytes.get_mut(read..).unwrap_or_default(),
            }
        }
        Ok(())
    }

    fn left(&self) -> Option<Duration> {
        remaining(self.until)
    }
}

fn remaining(until: Instant) -> Option<Duration> {
    Some(until.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
}
