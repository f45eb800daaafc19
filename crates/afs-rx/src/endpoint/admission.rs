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

/// Interval of reachability pings.
const VALIDATION_PING_INTERVAL: Duration = Duration::from_secs(2);

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
        let peer = self.peers.get(connection.peer);
        let reachable = peer.is_some_and(|peer| now < peer.reachable_until);
        if connection.reachability_check && !reachable {
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

    /// Pings on one of the waiting calls; the reply admits them all.
    pub(super) fn send_validation_ping(&mut self, now: Instant, key: Key) {
        self.randomize_serials(key);
        let Some(connection) = self.connection_mut(key) else { return };
        connection.validation_ping_at = now + VALIDATION_PING_INTERVAL;
        let calls = connection.calls();
        let waiting = calls
            .into_iter()
            .flatten()
            .find(|call| self.calls.get(*call).is_some_and(|call| call.phase == Phase::Waiting));
        match waiting {
            Some(call_key) => {
                if let Some(call) = self.calls.get_mut(call_key) {
                    call.ping = true;
                }
                self.reschedule(call_key);
            }
            None => {
                if let Some(connection) = self.connection_mut(key) {
                    connection.validation_ping_at = Instant::FAR_FUTURE;
                }
            }
        }
        self.arm_connection(key);
    }
}
