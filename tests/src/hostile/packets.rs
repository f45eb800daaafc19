//! Genuine Rx datagrams, recorded from a call between two endpoints.

use std::net::SocketAddr;

use afs_rx::packet::{Header, PacketType, flags};
use afs_rx::{Config, Endpoint, Event, Instant, NullClient, NullServer};
use afs_sim::SimRng;
use bytes::Bytes;

/// All datagrams of a call with this request, from both sides: data, acknowledgements, the reply, an abort.
///
/// # Panics
/// If the call fails.
#[must_use]
pub fn of_call(rng: &mut SimRng, service: u16, request: &[u8], reply: &[u8]) -> Vec<Vec<u8>> {
    let mut recording = Recording::new(rng, service);
    let connection = recording.client.connect(NOW, SERVER, service, Box::new(NullClient));
    let call = recording.client.open_call(NOW, connection).unwrap_or_else(|error| panic!("{error}"));
    let mut request = Bytes::copy_from_slice(request);
    let written = recording.client.write(NOW, call, &mut request);
    written.unwrap_or_else(|error| panic!("a request of one window: {error}"));
    let finished = recording.client.finish_send(NOW, call);
    finished.unwrap_or_else(|error| panic!("a request's end: {error}"));
    recording.play();
    while let Some(event) = recording.server.poll_event() {
        if let Event::IncomingCall { call, .. } = event {
            let _ = recording.server.write(NOW, call, &mut Bytes::copy_from_slice(reply));
            let _ = recording.server.finish_send(NOW, call);
        }
    }
    recording.play();
    recording.client.abort(NOW, call, -6);
    recording.play();
    recording.heard
}

/// Packets of rxdebug, and packets of every type, without contents or with too much.
#[must_use]
pub fn of_every_type(rng: &mut SimRng, service: u16) -> Vec<Vec<u8>> {
    let header = |rng: &mut SimRng, kind| Header {
        epoch: (rng.u64() >> 32) as u32 | 0x8000_0000,
        cid: (rng.u64() >> 32) as u32,
        call: 1,
        seq: 1,
        serial: 1,
        kind: PacketType(kind),
        flags: flags::CLIENT_INITIATED | flags::LAST_PACKET,
        user_status: 0,
        security_index: 0,
        checksum: 0,
        service,
    };
    let packet = |rng: &mut SimRng, kind: u8| {
        let mut bytes = header(rng, kind).to_bytes().to_vec();
        bytes.extend((0..40).flat_map(|word: u32| word.to_be_bytes()));
        bytes
    };
    (0..=20).map(|kind| packet(rng, kind)).collect()
}

/// Two endpoints, and the datagrams recorded between them.
struct Recording {
    client: Endpoint,
    server: Endpoint,
    heard: Vec<Vec<u8>>,
}

impl Recording {
    fn new(rng: &mut SimRng, service: u16) -> Self {
        let mut seed = || {
            let mut seed = [0; 32];
            rng.fill(&mut seed);
            seed
        };
        // Packets of the size used between hosts: more packets, and some that are one of several.
        let mut config = Config::default();
        config.packet_size_loopback = config.packet_size;
        let client = Endpoint::new(config.clone(), seed());
        let mut server = Endpoint::new(config, seed());
        let listening = server.listen(service, vec![Box::new(NullServer)]);
        listening.unwrap_or_else(|error| panic!("service {service}: {error}"));
        Self { client, server, heard: Vec::new() }
    }

    /// Carries datagrams in both directions until there are none.
    fn play(&mut self) {
        loop {
            let there = taken(&mut self.client);
            let back = taken(&mut self.server);
            if there.is_empty() && back.is_empty() {
                return;
            }
            for datagram in &there {
                self.server.handle_datagram(NOW, CLIENT, Bytes::copy_from_slice(datagram));
            }
            for datagram in &back {
                self.client.handle_datagram(NOW, SERVER, Bytes::copy_from_slice(datagram));
            }
            self.heard.extend(there);
            self.heard.extend(back);
        }
    }
}

fn taken(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    let mut train = Vec::new();
    while let Some(transmit) = endpoint.poll_transmit(NOW, &mut train) {
        let size = transmit.segment_size.unwrap_or(transmit.len).max(1);
        let bytes = train.get(..transmit.len).unwrap_or(&train);
        out.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        train.clear();
    }
    out
}

const NOW: Instant = Instant::from_nanos(1_000_000_000);
const CLIENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2)), 7001);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 7000);
