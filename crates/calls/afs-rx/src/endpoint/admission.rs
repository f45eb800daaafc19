//! Admission of a server's waiting calls: docs/protocol/rx.md "10. What the server does with a new call".

use super::Endpoint;
use super::data::notify_reader;
use crate::Instant;
use crate::call::Phase;
use crate::connection::ChallengeState;
use crate::error::CallError;
use crate::event::Event;
use crate::slab::Key;
use crate::stats::DropReason;
use core::time::Duration;

/// Time from the first reachability ping to the second; each further interval is twice as long. A caller may give up
/// after two seconds (a file server that breaks a callback), and either datagram may be lost.
const PING_INTERVAL_FIRST: Duration = Duration::from_millis(250);
/// Longest interval of reachability pings.
const PING_INTERVAL_MAX: Duration = Duration::from_secs(2);
/// Pings after which the interval no longer grows.
const PINGS_COUNTED: u32 = 3;
const _: () = assert!(PING_INTERVAL_FIRST.as_millis() << PINGS_COUNTED == PING_INTERVAL_MAX.as_millis());

impl Endpoint {
    /// Hands the connection's waiting calls to the application, if its client is authenticated and, where the service
    /// requires it, reachable. Otherwise sends a challenge or a ping.
    pub(super) fn admit(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        if !connection.is_authenticated() {
            if !connection.challenge.again_at.is_set() {
                self.send_challenge(now, key);
            }
            return;
        }
        if connection.reachability_check && !self.is_reachable(now, connection.peer) {
            if !connection.validation_ping_at.is_set() {
                self.send_validation_ping(now, key);
            }
            return;
        }
        self.announce_calls(now, key);
    }

    fn announce_calls(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connection_mut(key) else { return };
        connection.challenge = ChallengeState::NONE;
        connection.validation_ping_at = Instant::FAR_FUTURE;
        let (calls, service, id, peer) =
            (connection.calls(), connection.service, connection.id, connection.peer);
        // Only a client at a validated address exists and can have lost contact; any other may be forged.
        let is_validated = self.peers.get(peer).is_some_and(|peer| peer.is_validated);
        for call_key in calls.into_iter().flatten() {
            if self.calls.get(call_key).is_none_or(|call| call.phase != Phase::Waiting) {
                continue;
            }
            if !self.count_admitted_call(call_key) {
                self.refuse_waiting_call(now, call_key);
                continue;
            }
            let Some(call) = self.calls.get_mut(call_key) else { continue };
            call.phase = Phase::Active;
            if is_validated {
                call.limits.raise_dead_time(self.config.dead_time_incoming);
            }
            self.waiting_bytes -= call.receive.held();
            if call.receive.past_contiguous() > 1 {
                call.receive.open_window();
            }
            self.stats.calls_received += 1;
            self.events.push_back(Event::IncomingCall { call: call.id, service, connection: id });
            notify_reader(call, &mut self.events);
        }
    }

    /// A limit is reached: aborts a waiting call with `busy_code`.
    fn refuse_waiting_call(&mut self, now: Instant, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let (connection, channel, number) = (call.connection, call.channel, call.number);
        self.stats.drop_packet(DropReason::TooManyCalls);
        let code = self.config.busy_code;
        self.push_abort(now, connection, channel, number, code);
        self.fail_call(now, key, CallError::LocalAbort(code), Some(code));
    }

    /// Pings at once for a connection's first or newest waiting call; the reply admits them all.
    fn send_validation_ping(&mut self, now: Instant, key: Key) {
        self.randomize_serials(key);
        let Some(connection) = self.connection_mut(key) else { return };
        connection.validation_pings = 0;
        let peer = connection.peer;
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.pinged_by = Some(key);
        }
        self.ping_newest_call(now, key);
    }

    /// The interval after a reachability ping is over: another connection's ping may have been answered meanwhile. The
    /// ping is repeated on the connection with the peer's newest call, because those before it may have ended there,
    /// and each ping takes credit of an unvalidated address.
    pub(super) fn validation_timeout(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        if self.is_reachable(now, connection.peer) {
            self.admit(now, key);
            return;
        }
        let newest = self.peers.get(connection.peer).and_then(|peer| peer.pinged_by);
        let pings = |other: Key| {
            self.connections.slab.get(other).is_some_and(|other| other.validation_ping_at.is_set())
        };
        match newest.is_some_and(|newest| newest != key && pings(newest)) {
            true => self.schedule_validation_ping(now, key),
            false => self.ping_newest_call(now, key),
        }
    }

    fn ping_newest_call(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        let calls = connection.calls().into_iter().flatten();
        let waiting = calls.filter_map(|key| {
            let call = self.calls.get(key).filter(|call| call.phase == Phase::Waiting)?;
            Some((call.last_heard, key))
        });
        let Some((_, call_key)) = waiting.max_by_key(|(heard, _)| *heard) else {
            if let Some(connection) = self.connection_mut(key) {
                connection.validation_ping_at = Instant::FAR_FUTURE;
            }
            return;
        };
        if let Some(call) = self.calls.get_mut(call_key) {
            call.ping = true;
        }
        self.reschedule(call_key);
        self.schedule_validation_ping(now, key);
    }

    fn schedule_validation_ping(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connection_mut(key) else { return };
        let interval =
            PING_INTERVAL_FIRST.saturating_mul(1 << connection.validation_pings.min(PINGS_COUNTED));
        connection.validation_ping_at = now + interval.min(PING_INTERVAL_MAX);
        connection.validation_pings = connection.validation_pings.saturating_add(1);
        self.arm_connection(key);
    }

    fn is_reachable(&self, now: Instant, peer: Key) -> bool {
        self.peers.get(peer).is_some_and(|peer| now < peer.reachable_until)
    }
}
