//! Test kit: one endpoint against hand-made packets, with the packets expected at each time.

#![allow(dead_code)]

use afs_rx::packet::{Ack, AckTrailer, Header, PacketType, Packets, flags};
use afs_rx::{CallId, Config, ConnId, Endpoint, Event, Instant, NullClient, NullServer, Read};
use bytes::Bytes;
use core::time::Duration;
use std::net::SocketAddr;

pub const EPOCH: u32 = 0x8123_4567;
pub const CID: u32 = 0x1000;
pub const SERVICE: u16 = 52;

/// A packet the endpoint sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sent {
    pub to: SocketAddr,
    pub header: Header,
    pub payload: Bytes,
}

pub struct Script {
    pub now: Instant,
    pub end: Endpoint,
    pub peer: SocketAddr,
    buf: Vec<u8>,
}

pub fn peer() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 9], 7001))
}

/// A header of a packet from a client by hand.
pub fn from_client(kind: PacketType, call: u32, seq: u32, serial: u32, more_flags: u8) -> Header {
    Header {
        epoch: EPOCH,
        cid: CID,
        call,
        seq,
        serial,
        kind,
        flags: flags::CLIENT_INITIATED | more_flags,
        user_status: 0,
        security_index: 0,
        checksum: 0,
        service: SERVICE,
    }
}

pub fn ack_payload(first: u32, previous: u32, serial: u32, reason: u8, soft: &[u8]) -> Vec<u8> {
    let trailer = AckTrailer {
        mtu_max: Some(1444),
        mtu_interface: Some(1444),
        window: Some(32),
        jumbo_packets: Some(1),
    };
    let mut payload = Vec::new();
    Ack { buffer_space: 0, skew_max: 0, first, previous, serial, reason, soft, trailer }.encode(&mut payload);
    payload
}

impl Script {
    /// The path to the peer is known: it gets the largest packets, and no padded pings.
    pub fn new(mut config: Config) -> Self {
        config.packet_size_unproven = config.packet_size;
        let end = Endpoint::new(config, [3; 32]);
        Script { now: Instant::ZERO + Duration::from_secs(10), end, peer: peer(), buf: Vec::new() }
    }

    /// A server of `SERVICE` without security.
    pub fn server() -> Self {
        Self::server_with(Config::default())
    }

    pub fn server_with(config: Config) -> Self {
        let mut script = Script::new(config);
        assert_eq!(script.end.listen(SERVICE, vec![Box::new(NullServer)]), Ok(()));
        script
    }

    /// A client with one connection and one call whose request has been written and ended.
    pub fn client_with(config: Config, request: &[u8]) -> (Self, ConnId, CallId) {
        let mut script = Script::new(config);
        let connection = script.end.connect(script.now, script.peer, SERVICE, Box::new(NullClient));
        let call = script.call(connection, request);
        (script, connection, call)
    }

    pub fn client(request: &[u8]) -> (Self, ConnId, CallId) {
        Self::client_with(Config::default(), request)
    }

    /// Begins another call.
    pub fn call(&mut self, connection: ConnId, request: &[u8]) -> CallId {
        let call = self.end.open_call(self.now, connection).expect("a free channel");
        let mut data = Bytes::copy_from_slice(request);
        assert_eq!(self.end.write(self.now, call, &mut data), Ok(request.len()));
        assert_eq!(self.end.finish_send(self.now, call), Ok(()));
        call
    }

    pub fn give(&mut self, header: Header, payload: &[u8]) {
        self.give_from(self.peer, header, payload);
    }

    pub fn give_from(&mut self, from: SocketAddr, header: Header, payload: &[u8]) {
        let datagram = [&header.to_bytes()[..], payload].concat();
        self.end.handle_datagram(self.now, from, datagram.into());
    }

    /// The packets that the endpoint sends at this moment.
    pub fn sent(&mut self) -> Vec<Sent> {
        let mut all = Vec::new();
        while let Some(transmit) = self.end.poll_transmit(self.now, &mut self.buf) {
            let segment = transmit.segment_size.unwrap_or(transmit.len);
            for datagram in self.buf[..transmit.len].chunks(segment) {
                let packets = Packets::new(Bytes::copy_from_slice(datagram)).expect("a whole header");
                all.extend(packets.map(|(header, payload)| Sent { to: transmit.to, header, payload }));
            }
        }
        all
    }

    /// The one packet the endpoint sends at this moment.
    pub fn sent_one(&mut self) -> Sent {
        let sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:#?}");
        sent.into_iter().next().expect("one")
    }

    pub fn sent_none(&mut self) {
        assert_eq!(self.sent(), []);
    }

    pub fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.end.poll_event()).collect()
    }

    /// The call that has just arrived.
    pub fn incoming(&mut self) -> CallId {
        let events = self.events();
        let calls: Vec<CallId> = events
            .iter()
            .filter_map(|event| match event {
                Event::IncomingCall { call, .. } => Some(*call),
                _ => None,
            })
            .collect();
        assert_eq!(calls.len(), 1, "{events:?}");
        calls[0]
    }

    /// Advances time by `after`, stopping at every deadline; returns the packets sent, with the milliseconds since
    /// the start of the wait.
    pub fn wait(&mut self, after: Duration) -> Vec<(u64, Sent)> {
        let (start, end) = (self.now, self.now + after);
        let mut all = Vec::new();
        loop {
            let next = self.end.poll_timeout().filter(|at| *at <= end);
            self.now = self.now.max(next.unwrap_or(end));
            self.end.handle_timeout(self.now);
            let elapsed = (self.now - start).as_millis() as u64;
            all.extend(self.sent().into_iter().map(|sent| (elapsed, sent)));
            if next.is_none() {
                return all;
            }
        }
    }

    pub fn wait_ms(&mut self, after: u64) -> Vec<(u64, Sent)> {
        self.wait(Duration::from_millis(after))
    }

    /// Everything readable of a call, and the result after it.
    pub fn read_all(&mut self, call: CallId) -> (Vec<u8>, Read) {
        let mut all = Vec::new();
        loop {
            match self.end.read(self.now, call, 1 << 20).expect("the call lives") {
                Read::Data(data) => all.extend_from_slice(&data),
                other => return (all, other),
            }
        }
    }

    /// Writes a reply and ends it.
    pub fn reply(&mut self, call: CallId, reply: &[u8]) {
        let mut data = Bytes::copy_from_slice(reply);
        assert_eq!(self.end.write(self.now, call, &mut data), Ok(reply.len()));
        assert_eq!(self.end.finish_send(self.now, call), Ok(()));
    }

    /// A packet from the server of the connection that `request` opened.
    pub fn server_header(&self, request: &Header, kind: PacketType, seq: u32, more_flags: u8) -> Header {
        Header { seq, serial: 100 + seq, kind, flags: more_flags, ..*request }
    }
}

impl Sent {
    pub fn ack(&self) -> Ack<'_> {
        assert_eq!(self.header.kind, PacketType::ACK, "{self:?}");
        Ack::decode(&self.payload).expect("a whole ACK")
    }

    /// Code of an ABORT.
    pub fn abort(&self) -> i32 {
        assert_eq!(self.header.kind, PacketType::ABORT, "{self:?}");
        assert_eq!(self.payload.len(), 4);
        i32::from_be_bytes(self.payload[..4].try_into().expect("four bytes"))
    }

    /// Type, sequence or first word, flags: enough to tell packets apart in an assertion.
    pub fn brief(&self) -> (PacketType, u32, u32, u8) {
        (self.header.kind, self.header.call, self.header.seq, self.header.flags)
    }
}
