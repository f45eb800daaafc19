//! Transmit scheduler: round robin among calls, one datagram or one GSO batch of DATA at a time.

use super::packet_builder::{Built, PacketBuilder};
use super::sealing::{Sealing, Turn};
use super::{Endpoint, Transmit};
use crate::Instant;
use crate::call::Phase;
use crate::slab::Key;

/// The next output.
pub enum Output {
    /// The buffer holds a datagram or a batch. Once it is sent, the turn must be ended.
    Ready(Transmit, Option<Turn>),
    /// These packets must be sealed first.
    Sealing(Sealing),
}

impl Endpoint {
    /// The next datagram or batch to send. `buf` is overwritten. Calls take turns, a batch each. The ciphers run
    /// here: [`Endpoint::poll_output`] is for drivers who share the endpoint.
    #[must_use]
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            if let Some(mut sealing) = self.sealing.take() {
                let transmit = sealing.next(buf);
                match sealing.is_empty() {
                    true => self.end_sealing(now, sealing),
                    false => self.sealing = Some(sealing),
                }
                if transmit.is_some() {
                    return transmit;
                }
            }
            match self.poll_output(now, buf)? {
                Output::Sealing(sealing) => self.sealing = Some(sealing),
                Output::Ready(transmit, turn) => {
                    turn.into_iter().for_each(|turn| self.end_turn(turn));
                    return Some(transmit);
                }
            }
        }
    }

    /// Whether [`Endpoint::poll_output`] may have output.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.control.len() > 0 || !self.sending.is_empty()
    }

    /// As [`Endpoint::poll_transmit`], but packets that must be sealed are handed out for that, and each call has one
    /// turn at a time. `buf` is overwritten.
    #[must_use]
    pub fn poll_output(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Output> {
        buf.clear();
        loop {
            if let Some((to, packet)) = self.control.pop() {
                buf.extend_from_slice(&packet);
                return Some(Output::Ready(Transmit { to, len: buf.len(), segment_size: None }, None));
            }
            let key = *self.sending.front()?;
            if let Some(leaving) = self.give_turn(now, key, buf) {
                return Some(leaving);
            }
        }
    }

    fn give_turn(&mut self, now: Instant, key: Key, buf: &mut Vec<u8>) -> Option<Output> {
        self.sending.pop_front();
        let mut builder = self.builder(now, key)?;
        builder.call.queued = false;
        if builder.call.phase == Phase::Over {
            return None;
        }
        let built = builder.build(buf);
        let (to, connection) = (builder.connection.to, builder.connection.id.0);
        let (leaving, len) = match built {
            Built::Packets(packets, size) => {
                let segment_size = (packets > 1).then_some(size);
                (Output::Ready(Transmit { to, len: buf.len(), segment_size }, Some(Turn(key))), buf.len())
            }
            Built::Sealing(sealing) => {
                let len = sealing.len_max();
                (Output::Sealing(sealing), len)
            }
            Built::Nothing => return None,
            Built::Failed(code) => {
                self.fail_connection(now, connection, code, false);
                self.push_connection_abort(now, connection, code);
                return None;
            }
        };
        if let Some(call) = self.calls.get_mut(key) {
            call.in_turn = true;
        }
        // Arms the timers that sending has set.
        self.reschedule(key);
        self.notify_writer(key);
        // To the call, a packet that may not be sent is a lost one.
        if !self.may_send(connection, len) {
            buf.clear();
            self.end_turn(Turn(key));
            return None;
        }
        Some(leaving)
    }

    fn builder(&mut self, now: Instant, key: Key) -> Option<PacketBuilder<'_>> {
        let call = self.calls.get_mut(key)?;
        let connection = self.connections.slab.get_mut(call.connection)?;
        let peer = self.peers.get_mut(connection.peer)?;
        Some(PacketBuilder { call, connection, peer, stats: &mut self.stats, config: &self.config, now })
    }
}
