//! Probe of the services of a host: which reply, and with which version. One VERSION packet each, to which every Rx
//! service of any implementation replies, also for an unknown client (docs/protocol/rx.md "13. DEBUG and VERSION").

use crate::error::{CommandError, CommandResult};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

/// How long the probe waits for replies, and the interval at which it sends the request again.
const PATIENCE: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(500);

/// Length of an Rx header, offsets of type and flags in it, and the values of a VERSION request.
const HEADER_LEN: usize = 28;
const KIND_AT: usize = 20;
const FLAGS_AT: usize = 21;
const VERSION: u8 = 13;
const FROM_CLIENT: u8 = 1;
/// Longest text of a version, in bytes.
const TEXT_MAX: usize = 65;

/// The versions of the services at these addresses. Services that do not reply are missing.
///
/// # Errors
/// The socket cannot be opened.
pub(super) fn versions(services: &[SocketAddrV4]) -> CommandResult<BTreeMap<SocketAddrV4, String>> {
    let failed = |e: std::io::Error| CommandError::failed(format!("cannot open a socket: {e}"));
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(failed)?;
    let end = Instant::now() + PATIENCE;
    let mut found = BTreeMap::new();
    while found.len() < services.len() && Instant::now() < end {
        let question = question();
        for service in services.iter().filter(|service| !found.contains_key(*service)) {
            // A failure to send shows as a missing reply.
            let _ = socket.send_to(&question, service);
        }
        hear(&socket, services, &mut found, (Instant::now() + AGAIN).min(end)).map_err(failed)?;
    }
    Ok(found)
}

/// Receives replies until all have arrived or the time is over.
fn hear(
    socket: &UdpSocket,
    services: &[SocketAddrV4],
    found: &mut BTreeMap<SocketAddrV4, String>,
    end: Instant,
) -> std::io::Result<()> {
    let mut packet = [0; 1500];
    while found.len() < services.len() {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        socket.set_read_timeout(Some(left))?;
        match socket.recv_from(&mut packet) {
            Ok((length, SocketAddr::V4(from))) if services.contains(&from) => {
                if let Some(version) = packet.get(..length).and_then(version) {
                    found.insert(from, version);
                }
            }
            Ok(_) => {}
            // A port without a listener causes an error of the socket.
            Err(e) if is_no_answer(e.kind()) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn is_no_answer(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionRefused | ErrorKind::Interrupted
    )
}

fn question() -> [u8; HEADER_LEN] {
    let mut packet = [0; HEADER_LEN];
    packet[KIND_AT] = VERSION;
    packet[FLAGS_AT] = FROM_CLIENT;
    packet
}

/// The text of a reply.
fn version(packet: &[u8]) -> Option<String> {
    let (header, text) = packet.split_at_checked(HEADER_LEN)?;
    if header.get(KIND_AT) != Some(&VERSION) {
        return None;
    }
    let text = text.split(|byte| *byte == 0).next()?;
    let text = String::from_utf8_lossy(text.get(..text.len().min(TEXT_MAX))?);
    Some(text.chars().filter(|c| !c.is_control()).collect::<String>().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_nothing_else() {
        let mut packet = question().to_vec();
        packet.extend_from_slice(b" Andrew 1.2\n\0\0\0");
        assert_eq!(version(&packet).as_deref(), Some("Andrew 1.2"));
        assert_eq!(version(&question()).as_deref(), Some(""));
        packet[KIND_AT] = 1;
        assert_eq!(version(&packet), None);
        assert_eq!(version(&[13; 27]), None);
    }

    #[test]
    fn one_that_listens_and_one_that_does_not() {
        let service = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(there) = service.local_addr().unwrap() else { panic!("IPv4") };
        let nobody = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, 9), there.port());
        let answering = std::thread::spawn(move || {
            let mut packet = [0; 100];
            let (length, from) = service.recv_from(&mut packet).unwrap();
            let answer = [&packet[..length], b"test\0"].concat();
            service.send_to(&answer, from).unwrap();
        });
        let found = versions(&[there, nobody]).unwrap();
        assert_eq!(found, BTreeMap::from([(there, "test".to_owned())]));
        answering.join().unwrap();
    }
}
