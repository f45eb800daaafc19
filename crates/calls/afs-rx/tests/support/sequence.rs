//! A sequence of calls, one at a time on one connection, and what it took.

use super::{CLIENT, SERVER, Weather, World, address};
use afs_rx::{CallId, Config, ConnId, Event, Instant, NullClient, NullServer, Read, Stats};
use bytes::Bytes;
use core::time::Duration;

const SERVICE: u16 = 1;

#[derive(Clone, Copy)]
pub struct Sequence {
    pub calls: usize,
    /// Bytes of each request.
    pub request: usize,
    /// Bytes of each reply.
    pub reply: usize,
    /// From the end of a request to its reply.
    pub service_time: Duration,
    /// From the end of a call to the next.
    pub pause: Duration,
    pub bytes_per_second: u64,
}

/// Measurements; the counts are of both sides together.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Without the first call, whose lost packets are missed by the time-out of a peer that was never measured.
    pub took: Duration,
    pub resent: u64,
    pub timeouts: u64,
    pub probes: u64,
    pub acks: u64,
    pub data_packets: u64,
    /// What the client says of its path at the end.
    pub narrow_path: Option<usize>,
}

struct Run {
    world: World,
    sequence: Sequence,
    connection: ConnId,
    client: Option<CallId>,
    next_call_at: Instant,
    server: Option<CallId>,
    reply_at: Option<Instant>,
    /// Bytes that each side has still to write to its call, if it writes now.
    left: [Option<usize>; 2],
    done: usize,
    /// When the first call was over.
    warm_at: Option<Instant>,
}

impl Sequence {
    pub const SMALL: Sequence = Sequence {
        calls: 1000,
        request: 60,
        reply: 100,
        service_time: Duration::ZERO,
        pause: Duration::ZERO,
        bytes_per_second: u64::MAX,
    };

    pub fn run(self, seed: u64, weather: Weather) -> Outcome {
        self.run_with(World::new(seed, weather, &Config::default()))
    }

    pub fn run_with(self, mut world: World) -> Outcome {
        world.bytes_per_second = self.bytes_per_second;
        world.ends[SERVER].listen(SERVICE, vec![Box::new(NullServer)]).unwrap();
        let (start, security) = (world.now, Box::new(NullClient));
        let connection = world.ends[CLIENT].connect(world.now, address(SERVER), SERVICE, security);
        let mut run = Run {
            world,
            sequence: self,
            connection,
            client: None,
            next_call_at: start,
            server: None,
            reply_at: None,
            left: [None; 2],
            done: 0,
            warm_at: None,
        };
        while run.done < self.calls {
            while run.step() {}
            let pause = (run.client.is_none() && run.done < self.calls).then_some(run.next_call_at);
            let waits = run.reply_at.into_iter().chain(pause);
            let Some(next) = waits.chain(run.world.next()).min() else { break };
            run.world.advance(next);
            assert!(run.world.now < start + Duration::from_secs(3600), "calls take for ever");
        }
        run.outcome()
    }
}

impl Run {
    fn outcome(&self) -> Outcome {
        let sum = |of: fn(&Stats) -> u64| self.world.ends.iter().map(|end| of(end.stats())).sum();
        Outcome {
            took: self.world.now - self.warm_at.unwrap(),
            resent: sum(|stats| stats.data_resent),
            timeouts: sum(|stats| stats.timeouts),
            probes: sum(|stats| stats.probes),
            acks: sum(|stats| stats.packets_sent[1]),
            data_packets: sum(|stats| stats.packets_sent[0]),
            narrow_path: self.world.ends[CLIENT].narrow_path(address(SERVER)),
        }
    }

    /// The applications do what they can at this moment. True when there may be more.
    fn step(&mut self) -> bool {
        let now = self.world.now;
        if self.client.is_none() && self.done < self.sequence.calls && now >= self.next_call_at {
            self.client = Some(self.world.ends[CLIENT].open_call(now, self.connection).unwrap());
            self.left[CLIENT] = Some(self.sequence.request);
        }
        if self.reply_at.is_some_and(|at| now >= at) {
            (self.reply_at, self.left[SERVER]) = (None, Some(self.sequence.reply));
        }
        self.write(CLIENT, self.client);
        self.write(SERVER, self.server);
        let mut moved = self.read(CLIENT, self.client);
        moved |= self.left[SERVER].is_none() && self.read(SERVER, self.server);
        self.world.transmit();
        for side in [CLIENT, SERVER] {
            while let Some(event) = self.world.ends[side].poll_event() {
                self.handle(side, event);
                moved = true;
            }
        }
        moved
    }

    fn write(&mut self, side: usize, call: Option<CallId>) {
        let (Some(call), Some(left)) = (call, self.left[side]) else { return };
        let (end, now) = (&mut self.world.ends[side], self.world.now);
        let left = left - end.write(now, call, &mut Bytes::from(vec![7; left])).unwrap();
        self.left[side] = (left > 0).then_some(left);
        if left == 0 {
            end.finish_send(now, call).unwrap();
        }
    }

    fn read(&mut self, side: usize, call: Option<CallId>) -> bool {
        let Some(call) = call else { return false };
        let read = self.world.ends[side].read(self.world.now, call, 1 << 20);
        matches!(read, Ok(Read::Data(_)))
    }

    fn handle(&mut self, side: usize, event: Event) {
        let now = self.world.now;
        match event {
            Event::IncomingCall { call, .. } => self.server = Some(call),
            Event::RequestDone(_) => self.reply_at = Some(now + self.sequence.service_time),
            Event::Finished(call, result) => {
                assert_eq!(result, Ok(()));
                self.world.ends[side].release(now, call);
                if side == CLIENT {
                    self.client = None;
                    self.done += 1;
                    self.warm_at.get_or_insert(now);
                    self.next_call_at = now + self.sequence.pause;
                }
            }
            _ => {}
        }
    }
}
