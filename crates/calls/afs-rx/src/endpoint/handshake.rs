//! Handlers of CHALLENGE and RESPONSE: docs/protocol/rx.md "11. Security framework".

use super::Endpoint;
use crate::Instant;
use crate::call::Phase;
use crate::connection::{ChallengeState, Ended};
use crate::error::{CallError, code};
use crate::ids::CHANNELS;
use crate::packet::{Header, PacketType};
use crate::security::{Challenge, Proof};
use crate::slab::Key;
use crate::stats::DropReason;
use afs_env::admission::Class;
use core::time::Duration;
use rand_chacha::rand_core::Rng;

const CHALLENGE_INTERVAL: Duration = Duration::from_secs(2);
const CHALLENGES_MAX: u32 = 50;
/// Delay of the abort after a refused response.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);
const RESPONSE_MAX: usize = 16 << 10;

impl Endpoint {
    /// Server: challenges the client while calls wait, a limited number of times.
    pub(super) fn send_challenge(&mut self, now: Instant, key: Key) {
        let random = &mut self.random;
        let Some(connection) = self.connections.slab.get_mut(key) else { return };
        let waits = connection.has_calls() || connection.claims;
        if !waits || connection.challenge.sent >= CHALLENGES_MAX {
            connection.challenge = ChallengeState::NONE;
            if waits {
                self.fail_waiting_calls(now, key);
            }
            return;
        }
        let payload = connection.security.challenge(now, &mut |bytes| random.fill_bytes(bytes));
        let Some(payload) = payload else { return };
        connection.challenge.sent += 1;
        connection.challenge.again_at = now + CHALLENGE_INTERVAL;
        self.push_connection_packet(now, key, PacketType::CHALLENGE, (0, 0), &payload);
        self.arm_connection(key);
    }

    /// The client did not respond to any challenge.
    fn fail_waiting_calls(&mut self, now: Instant, key: Key) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        for call_key in connection.calls().into_iter().flatten() {
            let waiting = self.calls.get(call_key).filter(|call| call.phase == Phase::Waiting);
            let Some((channel, number)) = waiting.map(|call| (call.channel, call.number)) else { continue };
            self.push_abort(now, key, channel, number, code::CALL_DEAD);
            self.fail_call(now, call_key, CallError::Unreachable, Some(code::CALL_DEAD));
        }
    }

    /// Client: responds, but only while a call is active.
    pub(super) fn handle_challenge(&mut self, now: Instant, key: Key, payload: &[u8]) {
        let Some(connection) = self.connections.slab.get_mut(key) else { return };
        let call_numbers = connection.call_numbers();
        let wanted = connection.has_calls() && connection.security.protects();
        let (epoch, cid, service) = (connection.epoch, connection.cid, connection.service);
        let challenge = Challenge { now, epoch, cid, service, payload, call_numbers };
        let Some(answer) = wanted.then(|| connection.security.respond(&challenge)).flatten() else {
            self.stats.drop_packet(DropReason::UnwantedChallenge);
            return;
        };
        match answer {
            Ok(response) if response.payload.len() <= RESPONSE_MAX => {
                let mut header = connection.header(PacketType::RESPONSE, 0, 0);
                header.checksum = response.checksum;
                let to = connection.to;
                self.push_packet(to, &header, &response.payload);
            }
            Ok(_) => self.refuse_connection(now, key, code::PROTOCOL_ERROR),
            Err(failure) => self.refuse_connection(now, key, failure.code),
        }
    }

    fn refuse_connection(&mut self, now: Instant, key: Key, code: i32) {
        self.fail_connection(now, key, code, false);
        self.push_connection_abort(now, key, code);
    }

    /// Server: verifies the response and admits waiting calls, or fails the connection.
    pub(super) fn handle_response(&mut self, now: Instant, key: Key, header: &Header, payload: &[u8]) {
        let Some(connection) = self.connections.slab.get_mut(key) else { return };
        let challenged = connection.challenge.sent > 0;
        let (epoch, cid, service) = (connection.epoch, connection.cid, connection.service);
        if !challenged || connection.is_authenticated() {
            self.stats.drop_packet(DropReason::UnwantedResponse);
            return;
        }
        if !self.responses.admits(now, connection.to.ip(), &self.config) {
            self.stats.drop_packet(DropReason::TooManyResponses);
            return;
        }
        let checksum = header.checksum;
        let proof = Proof { now, epoch, cid, service, checksum, payload };
        let Some(verified) = connection.security.verify(&proof) else { return };
        match verified {
            Ok(_) if connection.claims => {
                connection.challenge = ChallengeState::NONE;
                self.validate_address(now, key);
            }
            Ok(verified) => {
                if connection.epoch.is_global() && connection.security.authenticates_packets() {
                    self.connections.make_migratable(key);
                }
                if let Some(numbers) = verified.call_numbers {
                    self.adopt_call_numbers(now, key, numbers);
                }
                self.prove_connection(now, key, Class::Proven);
                self.validate_address(now, key);
                self.admit(now, key);
            }
            Err(failure) => {
                let code = failure.abort_code();
                connection.abort_at = now + REFUSAL_DELAY;
                self.fail_connection(now, key, code, false);
                self.arm_connection(key);
            }
        }
    }

    /// The client's numbers rule out replays of older calls, including those that already wait: their sealed packets
    /// may have been recorded before this server forgot the connection.
    fn adopt_call_numbers(&mut self, now: Instant, key: Key, numbers: [u32; CHANNELS]) {
        self.drop_older_calls(now, key, numbers);
        let Some(connection) = self.connection_mut(key) else { return };
        for (channel, number) in connection.channels.iter_mut().zip(numbers) {
            let before = number.saturating_sub(1);
            if channel.call.is_none() && before > channel.number {
                channel.number = before;
                channel.ended = Ended::Silent;
            }
        }
    }

    fn drop_older_calls(&mut self, now: Instant, key: Key, numbers: [u32; CHANNELS]) {
        let Some(connection) = self.connections.slab.get(key) else { return };
        for (call, number) in connection.calls().into_iter().zip(numbers) {
            let older = call.filter(|call| self.calls.get(*call).is_some_and(|call| call.number < number));
            if let Some(call) = older {
                self.stats.drop_packet(DropReason::OldCall);
                self.fail_call(now, call, CallError::Superseded, None);
            }
        }
    }
}
