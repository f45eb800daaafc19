//! Completion, failure and freeing of calls and connections.

use super::Endpoint;
use crate::Instant;
use crate::call::{Call, Phase};
use crate::connection::Ended;
use crate::error::CallError;
use crate::event::Event;
use crate::ids::Side;
use crate::slab::Key;
use crate::timer::Owner;
use afs_env::admission::Class;

/// Call structures kept for reuse.
const SPARE_CALLS: usize = 256;

impl Endpoint {
    /// Fails a call. `abort_code` is what late packets of the call are answered with; none when the peer ended it.
    pub(super) fn fail_call(&mut self, now: Instant, key: Key, error: CallError, abort_code: Option<i32>) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.phase == Phase::Over {
            return;
        }
        let announced = call.phase == Phase::Active;
        let freed = call.clear();
        self.stats.buffered_bytes -= freed;
        if !announced {
            self.waiting_bytes -= freed;
        }
        call.error = Some(error);
        call.abort_code = abort_code;
        let (side, released, id) = (call.side, call.released, call.id);
        // A server's application may still work on the call: its channel stays taken until then.
        if side == Side::Client || released || !announced {
            self.detach(now, key);
        }
        match released || !announced {
            true => self.free(key),
            false => self.push_event(Event::Finished(id, Err(error))),
        }
    }

    /// Completes a call: the reply was read (client) or delivered (server).
    pub(super) fn complete_call(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get_mut(key) else { return };
        if call.phase == Phase::Over {
            return;
        }
        let first = call.receive.past_contiguous();
        let ack_at = call.ack.delayed_until().min(now + call.final_ack_delay());
        let congestion_window = call.send.congestion_window();
        self.stats.buffered_bytes -= call.clear();
        let (side, channel, connection, id, released) =
            (call.side, call.channel, call.connection, call.id, call.released);
        self.end_channel(now, connection, channel, Ended::Received { first });
        self.prove_connection(now, connection, Class::Known);
        if let Some(connection) = self.connections.slab.get_mut(connection) {
            if side == Side::Client {
                connection.channels[channel].final_ack_at = ack_at;
            }
            if let Some(peer) = self.peers.get_mut(connection.peer) {
                peer.congestion_window = congestion_window;
            }
        }
        self.arm_connection(connection);
        match released {
            true => self.free(key),
            false => self.push_event(Event::Finished(id, Ok(()))),
        }
    }

    /// Removes a failed call from its channel, which then answers late packets.
    pub(super) fn detach(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let (connection, channel) = (call.connection, call.channel);
        let ended = call.abort_code.map_or(Ended::Silent, Ended::Aborted);
        let attached = self.connections.slab.get(connection).map(|found| found.channels[channel].call);
        if attached == Some(Some(key)) {
            self.end_channel(now, connection, channel, ended);
        }
    }

    fn end_channel(&mut self, now: Instant, key: Key, channel: usize, ended: Ended) {
        let Some(connection) = self.connections.slab.get_mut(key) else { return };
        connection.channels[channel].end(ended);
        if connection.side() == Side::Server {
            self.arm_idle_timer(now, key);
            return;
        }
        if std::mem::take(&mut connection.wants_channel) {
            let id = connection.id;
            self.push_event(Event::ChannelFree(id));
        }
    }

    /// Frees a call that is over and has left its channel.
    pub(super) fn free(&mut self, key: Key) {
        let Some(mut call) = self.calls.remove(key) else { return };
        if call.side == Side::Server {
            self.uncount_call(&mut call);
        }
        if self.spare_calls.len() < SPARE_CALLS {
            self.spare_calls.push(call);
        }
    }

    /// A structure for a new call, reused if possible.
    pub(super) fn spare_call(&mut self) -> Box<Call> {
        self.spare_calls.pop().unwrap_or_else(|| Box::new(Call::new()))
    }

    /// Fails a connection: its calls fail, and every later packet is answered with the code.
    pub(super) fn fail_connection(&mut self, now: Instant, key: Key, code: i32, by_peer: bool) {
        let Some(connection) = self.connection_mut(key) else { return };
        if connection.failed.is_some() {
            return;
        }
        connection.failed = Some(code);
        let (calls, id, side) = (connection.calls(), connection.id, connection.side());
        let error = match by_peer {
            true => CallError::ConnectionAborted(code),
            false => CallError::ConnectionFailed(code),
        };
        for call in calls.into_iter().flatten() {
            self.fail_call(now, call, error, None);
        }
        if side == Side::Client {
            self.push_event(Event::ConnectionFailed(id, code));
        }
    }

    /// Removes a connection. Its calls must be over.
    pub(super) fn remove_connection(&mut self, now: Instant, key: Key) {
        self.uncount_connection(key);
        let Some(connection) = self.connections.remove(key) else { return };
        self.timers.disarm(Owner::Connection(key));
        if let Some(peer) = self.peers.get_mut(connection.peer) {
            peer.clients.retain(|client| *client != key);
        }
        self.leave_peer(now, connection.peer);
        if connection.side() == Side::Server {
            self.push_event(Event::ConnectionGone(connection.id));
        }
    }
}
