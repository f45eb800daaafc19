//! Tests of the network tap, and of suspended machines.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use afs_rpc::{EnvExt, Instant};
use afs_sim::{NodeId, Port, PortHandler, Sim, SleepClock};
use bytes::Bytes;

/// Keeps the datagrams that it receives.
#[derive(Default)]
struct Inbox(Mutex<Vec<(SocketAddr, Bytes)>>);

impl PortHandler for Inbox {
    fn service(&self, _: &Port, _: Instant, arrived: Vec<(SocketAddr, Bytes)>, _: bool) {
        self.0.lock().unwrap().extend(arrived);
    }
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 7000))
}

fn machine(sim: &Sim, last: u8) -> (NodeId, Port, Arc<Inbox>) {
    let node = sim.node(&format!("m{last}"), IpAddr::from([10, 0, 0, last]));
    let inbox = Arc::new(Inbox::default());
    (node, sim.bind(node, address(last), inbox.clone()), inbox)
}

#[test]
fn a_listener_sees_what_goes_between_machines_and_sends_in_any_name() {
    let sim = Sim::new(1);
    let ((_, a, _), (_, _, inbox)) = (machine(&sim, 1), machine(&sim, 2));
    let tap = sim.tap();
    a.send(address(2), Bytes::from_static(b"true"));
    a.send(address(1), Bytes::from_static(b"to itself"));
    sim.inject(address(1), address(2), Bytes::from_static(b"false"));
    sim.inject(SocketAddr::from(([99, 0, 0, 1], 1)), address(2), Bytes::from_static(b"nobody"));
    sim.run_for(Duration::from_secs(1));
    let seen: Vec<_> = tap.take().into_iter().map(|seen| (seen.from.ip().to_string(), seen.data)).collect();
    let own = |data: &'static [u8]| ("10.0.0.1".to_owned(), Bytes::from_static(data));
    assert_eq!(seen[..2], [own(b"true"), own(b"false")]);
    assert_eq!((seen.len(), seen[2].0.as_str()), (3, "99.0.0.1"));
    assert_eq!(inbox.0.lock().unwrap().len(), 3);
}

#[test]
fn a_machine_that_sleeps_hears_nothing_and_its_timers_wait() {
    for (clock, late) in [(SleepClock::GoesOn, 0), (SleepClock::StandsStill, 100)] {
        let sim = Sim::new(1);
        let ((_, a, _), (node, _, inbox)) = (machine(&sim, 1), machine(&sim, 2));
        let (env, rung) = (sim.env(node), Arc::new(Mutex::new(Vec::new())));
        let (timers, bell) = (env.clone(), rung.clone());
        let begin = env.now();
        env.spawn(Box::pin(async move {
            for _ in 0..2 {
                timers.sleep(Duration::from_secs(60)).await;
                bell.lock().unwrap().push(timers.now() - begin);
            }
        }));
        sim.run_for(Duration::from_secs(10));
        sim.suspend(node, clock);
        a.send(address(2), Bytes::from_static(b"lost"));
        sim.run_for(Duration::from_secs(100));
        assert!(rung.lock().unwrap().is_empty());
        sim.resume(node);
        a.send(address(2), Bytes::from_static(b"heard"));
        sim.run_for(Duration::from_secs(200));
        assert_eq!(inbox.0.lock().unwrap().len(), 1);
        // A timer that expired in suspend fires at once; on a clock that stood still none has expired.
        let expected = if late == 0 { [110, 170] } else { [60, 120] };
        assert_eq!(*rung.lock().unwrap(), expected.map(Duration::from_secs), "{clock:?}");
    }
}
