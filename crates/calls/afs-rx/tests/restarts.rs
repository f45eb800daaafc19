//! A server that is restarted during a call: whether the process that follows gets it.

use crate::support::{CLIENT, SERVER, Weather, World, address};
use afs_rx::{CallError, CallId, Config, Endpoint, Event, NullClient, NullServer};
use bytes::Bytes;
use core::time::Duration;

const SERVICE: u16 = 1;
const LIMIT: Duration = Duration::from_millis(500);

/// A call whose server never replies.
struct Unanswered {
    world: World,
    call: CallId,
    /// Calls that the server's processes have got, together.
    begun: usize,
    ended: Option<Result<(), CallError>>,
}

impl Unanswered {
    /// Begins a call of two packets over a path that loses this much, per mille.
    fn new(limit: Option<Duration>, loss: u64) -> Self {
        let mut world = World::new(5, Weather { loss, ..Weather::FAIR }, &Config::default());
        world.ends[SERVER].listen(SERVICE, vec![Box::new(NullServer)]).unwrap();
        let (now, security) = (world.now, Box::new(NullClient));
        let client = &mut world.ends[CLIENT];
        let connection = client.connect(now, address(SERVER), SERVICE, security);
        let call = client.open_call(now, connection).unwrap();
        if let Some(limit) = limit {
            client.set_repeat_limit(call, now + limit);
        }
        client.write(now, call, &mut Bytes::from(vec![7; 2000])).unwrap();
        client.finish_send(now, call).unwrap();
        Unanswered { world, call, begun: 0, ended: None }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.world.now + time;
        while self.world.now < until {
            self.world.transmit();
            while let Some(event) = self.world.ends[SERVER].poll_event() {
                self.begun += usize::from(matches!(event, Event::IncomingCall { .. }));
            }
            while let Some(event) = self.world.ends[CLIENT].poll_event() {
                if let Event::Finished(call, result) = event {
                    assert_eq!(call, self.call);
                    self.ended = Some(result);
                }
            }
            let next = self.world.next().unwrap_or(until);
            self.world.advance(next.min(until));
        }
    }

    fn restart(&mut self) {
        let mut process = Endpoint::new(Config::default(), self.world.dice.seed());
        process.listen(SERVICE, vec![Box::new(NullServer)]).unwrap();
        self.world.ends[SERVER] = process;
    }
}

#[test]
fn a_restarted_server_gets_a_call_that_has_no_limit_and_none_that_has() {
    let dead = Some(Err(CallError::Unreachable));
    for (limit, outcome) in [(None, (1, None)), (Some(LIMIT), (0, dead))] {
        let mut call = Unanswered::new(limit, 1000);
        call.run_for(Duration::from_secs(3));
        call.restart();
        call.world.weather.loss = 0;
        call.run_for(Duration::from_secs(20));
        assert_eq!((call.begun, call.ended), outcome, "limit {limit:?}");
    }
}

#[test]
fn within_its_limit_a_call_is_sent_again() {
    let mut call = Unanswered::new(Some(4 * LIMIT), 1000);
    call.run_for(LIMIT);
    call.world.weather.loss = 0;
    call.run_for(Duration::from_secs(20));
    assert_eq!((call.begun, call.ended), (1, None));
}

#[test]
fn a_call_that_was_begun_outlasts_its_limit() {
    let mut call = Unanswered::new(Some(LIMIT), 0);
    call.run_for(Duration::from_secs(60));
    assert_eq!((call.begun, call.ended), (1, None));
}
