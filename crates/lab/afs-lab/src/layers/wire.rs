//! Requests to the peer, and its replies: lines of JSON over TCP, each of bounded length.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};

/// Longest line.
const LINE_LEN_MAX: u64 = 4096;

/// What the peer is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Its ports.
    Ports,
    /// Datagrams to a port of the caller.
    Udp { port: u16, datagram: usize, bytes: u64 },
    /// Bytes on this connection, to its end.
    Tcp { bytes: u64 },
}

/// Ports of the peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ports {
    /// Of Rx, in the order of [`PACKETS`](super::PACKETS).
    pub(super) rx: Vec<u16>,
    /// Of the data path.
    pub(super) path: u16,
    /// SHA-256 of its public key.
    pub(super) fingerprint: [u8; 32],
}

pub(super) fn write(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)
}

/// # Errors
/// No whole line of the right form.
pub(super) fn read<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<T> {
    let mut line = Vec::new();
    from.take(LINE_LEN_MAX).read_until(b'\n', &mut line)?;
    Ok(serde_json::from_slice(&line)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_long_or_wrong_lines_are_errors() {
        let request = Request::Udp { port: 7, datagram: 1472, bytes: 9 };
        let mut bytes = Vec::new();
        write(&mut bytes, &request).unwrap();
        assert_eq!(read::<Request>(&mut &bytes[..]).unwrap(), request);
        for wrong in [&b""[..], b"\n", b"{", b"{\"tcp\": {\"bytes\": -1}}\n", b"\"other\"\n"] {
            assert!(read::<Request>(&mut &wrong[..]).is_err(), "{wrong:?}");
        }
        let mut endless = io::BufReader::new(io::repeat(b' '));
        assert!(read::<Request>(&mut endless).is_err());
    }
}
