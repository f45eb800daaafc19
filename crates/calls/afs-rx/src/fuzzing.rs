//! Entry point of the fuzz target; see `fuzz/` and `tests/random_bytes.rs`.

use crate::{Config, Endpoint, Event, Instant, NullClient, NullServer, Read};
use bytes::Bytes;
use core::time::Duration;
use std::net::SocketAddr;

const SERVICE: u16 = 1;

/// Plays a script of datagrams, application commands and waits to an endpoint that is client and server.
///
/// Each step is one byte for the kind and, for a datagram, two bytes of length and the datagram. A datagram for the
/// client half gets the epoch and connection id it needs to be accepted.
pub fn endpoint(mut script: &[u8]) {
    let mut player = Player::new();
    while let Some((&step, rest)) = script.split_first() {
        script = rest;
        match step & 7 {
            0..=3 => {
                let len = rest.get(..2).map_or(0, |len| usize::from(u16::from_be_bytes([len[0], len[1]])));
                let body = rest.get(2..).unwrap_or_default();
                let (datagram, after) = body.split_at(len.min(body.len()));
                player.arrive(datagram, step);
                script = after;
            }
            4 => player.pass(Duration::from_millis(1 << (step >> 4))),
            _ => player.act(step >> 3),
        }
        player.drain();
    }
}

struct Player {
    end: Endpoint,
    now: Instant,
    peer: SocketAddr,
    /// Epoch and connection id of the client half.
    ours: [u8; 8],
    calls: Vec<crate::CallId>,
    buf: Vec<u8>,
}

impl Player {
    fn new() -> Self {
        let mut end = Endpoint::new(Config::default(), [1; 32]);
        let _ = end.listen(SERVICE, vec![Box::new(NullServer)]);
        let (now, peer) = (Instant(1), SocketAddr::from(([192, 0, 2, 1], 7001)));
        let connection = end.connect(now, peer, SERVICE, Box::new(NullClient));
        let calls: Vec<_> = (0..3).filter_map(|_| end.open_call(now, connection).ok()).collect();
        for (index, call) in calls.iter().enumerate() {
            let _ = end.write(now, *call, &mut Bytes::from(vec![7; 4000 * index]));
            let _ = end.finish_send(now, *call);
        }
        let mut ours = [0; 8];
        if let Some(info) = end.connection(connection) {
            ours[..4].copy_from_slice(&info.epoch.0.to_be_bytes());
            ours[4..].copy_from_slice(&info.cid.0.to_be_bytes());
        }
        Player { end, now, peer, ours, calls, buf: Vec::new() }
    }

    /// Bit 0 of the step: for the client half; bits 3 and 4: from another address.
    fn arrive(&mut self, datagram: &[u8], step: u8) {
        let at_client = step & 1 == 1;
        let from = match step >> 3 & 3 {
            1 => SocketAddr::from(([192, 0, 2, 2], self.peer.port())),
            2 => SocketAddr::from(([192, 0, 2, 3], 7777)),
            _ => self.peer,
        };
        let mut datagram = datagram.to_vec();
        if let Some(ids) = datagram.get_mut(..8).filter(|_| at_client) {
            let channel = ids[7] & 3;
            ids.copy_from_slice(&self.ours);
            ids[7] |= channel;
        }
        self.end.handle_datagram(self.now, from, datagram.into());
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.end.handle_timeout(self.now);
    }

    /// One command of the application on one of its calls.
    fn act(&mut self, choice: u8) {
        let Some(call) = self.calls.get(usize::from(choice >> 2) % self.calls.len().max(1)).copied() else {
            return;
        };
        match choice & 3 {
            0 => while let Ok(Read::Data(_)) = self.end.read(self.now, call, 1000) {},
            1 => {
                let _ = self.end.write(self.now, call, &mut Bytes::from_static(&[9; 5000]));
                let _ = self.end.finish_send(self.now, call);
            }
            2 => self.end.abort(self.now, call, 5),
            _ => self.end.release(self.now, call),
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.end.poll_event() {
            if let Event::IncomingCall { call, .. } = event {
                self.calls.push(call);
            }
        }
        while self.end.poll_transmit(self.now, &mut self.buf).is_some() {}
    }
}
