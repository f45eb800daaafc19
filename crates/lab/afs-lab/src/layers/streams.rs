//! Streams of bytes from the peer by each layer, and the rate of each.

use super::link::{Link, network};
use super::wire::{Request, read};
use super::{PACKETS, file, key};
use crate::error::LabError;
use crate::load::{During, LoadError};
use afs_datapath::capability::{Access, ByteRange, Capability, Group, Revocations};
use afs_rpc::Connection;
use afs_wire::fs::FetchData64;
use afs_wire::ids::DataVersion;
use std::io::{self, Read};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// A way for bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Datagrams with so many bytes of payload. What is lost does not count.
    Udp(usize),
    Tcp,
    /// A call, in packets of [`PACKETS`] of that number.
    Rx(usize),
    /// The data path, in frames of so many bytes, with TLS or without.
    Path(usize, bool),
}

/// Bytes of a read of TCP.
const READ: usize = 256 << 10;
/// How long a receiver of datagrams waits for another one.
const SILENCE: Duration = Duration::from_millis(200);

impl Stream {
    /// Mbit/s of a stream of so many bytes.
    pub(super) fn rate(self, link: &Link, bytes: u64) -> Result<f64, LabError> {
        let (came, took) = match self {
            Self::Udp(datagram) => udp(link, datagram, bytes).map_err(network)?,
            Self::Tcp => tcp(link, bytes).map_err(network)?,
            Self::Rx(packets) => {
                let calls = link.calls(packets).ok_or(LabError::Lost)?;
                timed(bytes, || link.system.block_on(fetch(&calls, bytes)).map_err(LabError::Calls))?
            }
            Self::Path(frame, is_secured) => {
                // The connection is there before, as in a client.
                let session = link.system.block_on(link.session(is_secured))?;
                timed(bytes, || link.system.block_on(path(&session, frame, bytes)))?
            }
        };
        Ok(came as f64 * 8.0 / 1e6 / took.as_secs_f64().max(1e-9))
    }

    /// As the tables name it.
    pub(super) fn name(self) -> String {
        match self {
            Self::Udp(bytes) => format!("UDP/IP, datagrams of {bytes} bytes"),
            Self::Tcp => "TCP/IP".into(),
            Self::Rx(packets) => format!("Rx, packets of {} bytes", PACKETS[packets]),
            Self::Path(_, true) => "data path, TLS".into(),
            Self::Path(_, false) => "data path".into(),
        }
    }
}

fn timed(bytes: u64, work: impl FnOnce() -> Result<(), LabError>) -> Result<(u64, Duration), LabError> {
    let begun = Instant::now();
    work()?;
    Ok((bytes, begun.elapsed()))
}

/// From the first datagram to the last that arrives.
fn udp(link: &Link, datagram: usize, bytes: u64) -> io::Result<(u64, Duration)> {
    let socket = UdpSocket::bind(link.own_address()?)?;
    socket.set_read_timeout(Some(SILENCE))?;
    let port = socket.local_addr()?.port();
    let mut control = link.ask(&Request::Udp { port, datagram, bytes })?;
    let (mut buffer, mut came, mut first, mut last) = (vec![0; datagram + 1], 0, None, None);
    while let Ok(length) = socket.recv(&mut buffer) {
        let now = Instant::now();
        // The first only starts the clock.
        came += if first.is_some() { length as u64 } else { 0 };
        first = first.or(Some(now));
        last = Some(now);
    }
    let _sent: u64 = read(&mut control)?;
    let took = first.zip(last).map(|(first, last)| last - first).filter(|took| !took.is_zero());
    took.map(|took| (came, took)).ok_or_else(|| io::Error::other("no datagrams arrived"))
}

fn tcp(link: &Link, bytes: u64) -> io::Result<(u64, Duration)> {
    let begun = Instant::now();
    let mut stream = link.ask(&Request::Tcp { bytes })?;
    let (mut buffer, mut came) = (vec![0; READ], 0);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok((came, begun.elapsed())),
            length => came += length as u64,
        }
    }
}

/// Fetches so many bytes by one call.
pub(super) async fn fetch(calls: &Connection, bytes: u64) -> Result<(), LoadError> {
    let mut left = bytes;
    let mut call = calls.open(&request(bytes)).await.during("FetchData64")?;
    call.finish_request().during("FetchData64")?;
    call.read_exact(8).await.during("FetchData64")?;
    while left > 0 {
        let pieces = call.read_pieces(usize::try_from(left).unwrap_or(usize::MAX).min(1 << 20)).await;
        let came: u64 = pieces.during("FetchData64")?.iter().map(|piece| piece.len() as u64).sum();
        if came == 0 {
            return Err(LoadError::WrongLength { got: bytes - left, want: bytes });
        }
        left -= came.min(left);
    }
    call.finish::<FetchData64>().await.during("FetchData64").map(drop)
}

fn request(bytes: u64) -> FetchData64 {
    FetchData64 { fid: file(1), position: 0, length: bytes.cast_signed() }
}

async fn path(session: &afs_datapath::session::Client, frame: usize, bytes: u64) -> Result<(), LabError> {
    let failed = |error: afs_datapath::session::Error| network(io::Error::other(error.to_string()));
    let (key, fid) = (key(), file(frame));
    let capability = Capability {
        drive: session.drive(),
        epoch: session.epoch(),
        group: Group::File(fid),
        access: Access::READ,
        range: ByteRange::ALL,
        expires: u64::MAX,
        generation: Revocations::default().generation(Group::File(fid)),
        holder: key.holder(b"", b""),
    };
    let handle = session.present(&capability, &key.seal(&capability)).map_err(failed)?;
    let range = ByteRange::at(0, bytes).ok_or(LabError::Lost)?;
    let mut arriving = session.read(&handle, fid, range, DataVersion(1)).await.map_err(failed)?;
    while arriving.next().await.map_err(failed)?.is_some() {}
    Ok(())
}
