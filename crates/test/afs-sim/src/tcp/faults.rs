//! Faults of streams: at a chosen byte, and when a machine crashes.

use std::task::Waker;

use super::{Side, StreamId, StreamMishap};
use crate::world::State;

impl State {
    /// Triggers the fault of a direction if its byte is reached. True if it did.
    pub(super) fn trigger_fault(&mut self, id: StreamId, side: Side, woken: &mut Vec<Waker>) -> bool {
        let Some(connection) = self.net.streams.connections.get_mut(&id) else { return false };
        if !connection.is_established() {
            return false;
        }
        let end = connection.end(side);
        let Some(fault) = end.fault.filter(|fault| end.arrived >= fault.after) else { return false };
        end.fault = None;
        match fault.mishap {
            StreamMishap::Reset => {
                self.take_reset(id, side, woken);
                self.take_reset(id, side.other(), woken);
            }
            StreamMishap::Silence => connection.is_silent = true,
            StreamMishap::Stall(time) => {
                let at = self.now + time;
                end.busy_until = end.busy_until.max(at);
                end.wire.iter_mut().for_each(|(arrival, _)| *arrival = (*arrival).max(at));
            }
        }
        true
    }

    /// Ends the connections and listeners of every ended incarnation. Their peers notice when they send. Returns
    /// wakers to be dropped without a lock.
    pub(crate) fn abandon_dead_streams(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let streams = &mut self.net.streams;
        let dead = streams.listeners.extract_if(.., |_, listening| !listening.life.is_alive());
        wakers.extend(dead.filter_map(|(_, listening)| listening.accepting));
        let mut touched = Vec::new();
        for (id, connection) in &mut streams.connections {
            for end in connection.ends.iter_mut().filter(|end| end.is_held && !end.is_alive()) {
                wakers.extend(end.abandon());
                touched.push(*id);
            }
        }
        touched.into_iter().for_each(|id| self.remove_if_over(id));
        wakers
    }
}
