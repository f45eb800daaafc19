//! Requests to the KDCs of a realm over TCP and UDP, with deadlines.

use crate::config::{ConfigError, KdcAddress, Profile};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

/// Why no KDC of a realm replied.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The realm has no known KDC.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// All KDCs failed.
    #[error("no KDC of the realm {realm} replies ({reasons})")]
    Silent {
        /// The realm.
        realm: String,
        /// Each KDC with its error.
        reasons: String,
    },
}

/// Route to the KDCs of each realm. [`Network`] is the real one.
pub trait Kdcs {
    /// Sends `request` to a KDC of `realm` and returns the reply.
    ///
    /// # Errors
    /// No KDC is known, or none replies.
    fn ask(&self, realm: &str, request: &[u8]) -> Result<Vec<u8>, NetworkError>;
}

/// KDCs from `krb5.conf`, over TCP, or over UDP if a KDC does not accept TCP.
#[derive(Debug)]
pub struct Network<'a> {
    profile: &'a Profile,
}

/// Time limit for all KDCs of a realm together.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for a connection attempt.
const CONNECT: Duration = Duration::from_secs(3);
/// Time limit for a reply over a connection.
const ANSWER: Duration = Duration::from_secs(10);
/// Time-outs of the successive datagrams to one KDC.
const DATAGRAM_WAITS: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// Longest reply read, in bytes: the largest ticket and the data around it.
const ANSWER_MAX: usize = 256 * 1024;
/// Most addresses tried for one KDC.
const ADDRESSES_MAX: usize = 4;
/// Longest possible datagram.
const DATAGRAM_MAX: usize = 65_535;

impl<'a> Network<'a> {
    /// The KDCs in `profile`.
    pub fn new(profile: &'a Profile) -> Self {
        Self { profile }
    }
}

impl Kdcs for Network<'_> {
    fn ask(&self, realm: &str, request: &[u8]) -> Result<Vec<u8>, NetworkError> {
        let end = Instant::now() + PATIENCE;
        let mut reasons = Vec::new();
        for kdc in self.profile.kdcs(realm)? {
            match ask_one(&kdc, request, end) {
                Ok(answer) => return Ok(answer),
                Err(error) => reasons.push(format!("{kdc}: {error}")),
            }
        }
        Err(NetworkError::Silent { realm: realm.to_owned(), reasons: reasons.join("; ") })
    }
}

fn ask_one(kdc: &KdcAddress, request: &[u8], end: Instant) -> io::Result<Vec<u8>> {
    let addresses = (kdc.host.as_str(), kdc.port).to_socket_addrs()?;
    let mut outcome = Err(io::Error::other("it has no address"));
    for address in addresses.take(ADDRESSES_MAX) {
        outcome = match over_tcp(address, request, end) {
            Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => over_udp(address, request, end),
            outcome => outcome,
        };
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

/// Exchange over TCP: a length precedes each message (RFC 4120, section 7.2.2).
fn over_tcp(address: SocketAddr, request: &[u8], end: Instant) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&address, left(end)?.min(CONNECT))?;
    let end = end.min(Instant::now() + ANSWER);
    let len = u32::try_from(request.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.set_write_timeout(Some(left(end)?))?;
    stream.write_all(&[&len.to_be_bytes(), request].concat())?;
    let mut len = [0; 4];
    fill(&mut stream, &mut len, end)?;
    let len = u32::from_be_bytes(len) as usize;
    if len > ANSWER_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its reply is too long"));
    }
    let mut answer = vec![0; len];
    fill(&mut stream, &mut answer, end)?;
    Ok(answer)
}

/// Reads until `buffer` is full. A peer that sends single bytes cannot delay this beyond `end`.
fn fill(stream: &mut TcpStream, mut buffer: &mut [u8], end: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(end)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(len) => buffer = buffer.split_at_mut(len).1,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(io::ErrorKind::TimedOut.into()),
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn over_udp(address: SocketAddr, request: &[u8], end: Instant) -> io::Result<Vec<u8>> {
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    // A connected socket receives only datagrams of this peer, and the kernel's error if no process listens there.
    socket.connect(address)?;
    let mut answer = vec![0; DATAGRAM_MAX];
    for wait in DATAGRAM_WAITS {
        socket.send(request)?;
        socket.set_read_timeout(Some(left(end)?.min(wait)))?;
        match socket.recv(&mut answer) {
            Ok(len) => {
                answer.truncate(len);
                return Ok(answer);
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn profile(port: u16) -> Profile {
        let mut profile = Profile::default();
        profile.add(&["realms".into(), "R".into()], "kdc", format!("127.0.0.1:{port}"));
        profile
    }

    #[test]
    fn a_length_is_in_front_of_each_message() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kdc = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 9];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(b"\0\0\0\x06an").unwrap();
            stream.write_all(b"swer").unwrap();
            request
        });
        let profile = profile(port);
        assert_eq!(Network::new(&profile).ask("R", b"ask !").unwrap(), b"answer");
        assert_eq!(&kdc.join().unwrap(), b"\0\0\0\x05ask !");
    }

    #[test]
    fn a_length_without_end_takes_no_memory() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let kdc = thread::spawn(move || listener.accept().unwrap().0.write_all(&[0xff; 4]).unwrap());
        let said = Network::new(&profile(port)).ask("R", b"ask").unwrap_err().to_string();
        assert!(said.contains("too long"), "{said}");
        kdc.join().unwrap();
    }

    #[test]
    fn without_tcp_a_datagram_is_sent() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let kdc = thread::spawn(move || {
            let (len, from) = socket.recv_from(&mut [0; 16]).unwrap();
            socket.send_to(b"answer", from).unwrap();
            len
        });
        assert_eq!(Network::new(&profile(port)).ask("R", b"ask").unwrap(), b"answer");
        assert_eq!(kdc.join().unwrap(), 3);
        // The peer is gone: the kernel reports it, and there is no wait.
        let said = Network::new(&profile(port)).ask("R", b"ask").unwrap_err().to_string();
        assert!(said.contains(&format!("127.0.0.1:{port}: ")), "{said}");
    }
}
