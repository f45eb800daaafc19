//! Flood of damaged datagrams to one port.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use afs_rx::packet::{Header, PacketType, flags};
use afs_sim::SimRng;

use super::damage::{damage, noise_up_to};
use crate::live::process::seconds;
use crate::live::wait::until;

/// Sockets that send datagrams, each of which is a host to the servers.
#[derive(Debug)]
pub struct DatagramFlood {
    sockets: Vec<UdpSocket>,
    rng: SimRng,
}

impl DatagramFlood {
    /// A flood that follows from its seed.
    ///
    /// # Panics
    /// If the sockets cannot be opened.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let socket = || -> io::Result<UdpSocket> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let sockets: io::Result<_> = (0..8).map(|_| socket()).collect();
        Self { sockets: sockets.unwrap_or_else(|error| panic!("{error}")), rng: SimRng::new(seed) }
    }

    /// Sends `count` datagrams, most of them damaged copies of `genuine` ones. Every few datagrams it waits until the
    /// port has replied to a VERSION request, so that all of them have been received and none was lost to a full
    /// buffer.
    ///
    /// # Panics
    /// If the port does not reply.
    /// If the port does not answer.
    pub fn send_all(&mut self, port: SocketAddrV4, genuine: &[Vec<u8>], count: u64) {
        for number in 0..count {
            let datagram = self.datagram(genuine);
            self.send(port, &datagram);
            if number % PACE == PACE - 1 {
                self.wait_for_reply(port);
            }
        }
        self.wait_for_reply(port);
    }

    fn datagram(&mut self, genuine: &[Vec<u8>]) -> Vec<u8> {
        let rng = &mut self.rng;
        let one = rng.pick(genuine).cloned().unwrap_or_default();
        let other = rng.pick(genuine).cloned().unwrap_or_default();
        match rng.below(20) {
            0 => noise_up_to(rng, 100),
            1 => noise_up_to(rng, 65_508),
            2 => one,
            3..=8 => damage(rng, &one, &other),
            _ => damaged_inside(rng, &one, &other),
        }
    }

    fn send(&mut self, port: SocketAddrV4, datagram: &[u8]) {
        let datagram = datagram.get(..datagram.len().min(65_507)).unwrap_or_default();
        let Some(socket) = self.rng.pick(&self.sockets) else { return };
        // A datagram that this machine refuses to send, because its own buffer is full, does not matter.
        let _ = socket.send_to(datagram, port);
        let mut answer = [0; 2048];
        while socket.recv_from(&mut answer).is_ok() {}
    }

    fn wait_for_reply(&self, port: SocketAddrV4) {
        let Some(socket) = self.sockets.first() else { return };
        until(&format!("an answer from {port}"), seconds(20), || {
            let _ = socket.send_to(&version_question(), port);
            let mut answer = [0; 65_536];
            let end = std::time::Instant::now() + std::time::Duration::from_millis(200);
            while std::time::Instant::now() < end {
                match socket.recv_from(&mut answer) {
                    Ok((length, from)) if from == port.into() && is_version_answer(answer.get(..length)?) => {
                        return Some(());
                    }
                    Ok(_) => {}
                    Err(_) => std::thread::yield_now(),
                }
            }
            None
        });
    }
}

/// Damages the contents and leaves the header, so that as much as possible is decoded; the connection is new.
fn damaged_inside(rng: &mut SimRng, one: &[u8], other: &[u8]) -> Vec<u8> {
    let Some((head, body)) = one.split_at_checked(28) else { return one.to_vec() };
    let mut out = head.to_vec();
    let fresh = rng.u64().to_be_bytes();
    for (to, from) in out.iter_mut().zip(fresh).skip(1) {
        *to = from;
    }
    out.extend(damage(rng, body, other.get(28..).unwrap_or_default()));
    out
}

/// A VERSION request: docs/protocol/rx.md "13. DEBUG and VERSION".
fn version_question() -> Vec<u8> {
    let kind = PacketType::VERSION;
    let (flags, service) = (flags::CLIENT_INITIATED | flags::LAST_PACKET, 0);
    let header = Header {
        epoch: 0x0123_4567,
        cid: 0,
        call: 1,
        seq: 0,
        serial: 0,
        kind,
        flags,
        user_status: 0,
        security_index: 0,
        checksum: 0,
        service,
    };
    let mut question = header.to_bytes().to_vec();
    question.extend([0; 65]);
    question
}

fn is_version_answer(bytes: &[u8]) -> bool {
    Header::decode(bytes)
        .is_some_and(|header| header.kind == PacketType::VERSION && header.epoch == 0x0123_4567)
}

/// Datagrams between two VERSION requests; they fit into the buffer of any socket.
const PACE: u64 = 32;
