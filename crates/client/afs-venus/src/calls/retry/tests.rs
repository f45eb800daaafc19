//! Tests of the ladder as tables of outcomes and steps.

use std::time::Duration;

use afs_wire::error::AbortCode;

use super::ladder::RETURNS_MAX;
use super::*;
use crate::error::ErrorKind;
use Outcome::*;
use Step::*;

const LIMITS: RetryLimits = RetryLimits {
    total: Duration::from_secs(60),
    offline: Duration::from_secs(9),
    pause: Duration::from_secs(1),
    pause_max: Duration::from_secs(2),
};
const SHORT: Step = Pause(Duration::from_secs(1));
const LONG: Step = Pause(Duration::from_secs(2));

fn to(site: usize, address: usize) -> Step {
    Try { site, address }
}

fn at_most(seconds: u64) -> Step {
    AwaitServer(Duration::from_secs(seconds))
}

/// Applies outcomes to a ladder; pauses and relocations keep the same sites.
fn play(sites: &[Vec<bool>], outcomes: &[Outcome]) -> Vec<Step> {
    let mut ladder = Ladder::new(LIMITS, sites);
    let mut steps = vec![ladder.first()];
    let mut outcomes = outcomes.iter();
    let mut elapsed = Duration::ZERO;
    loop {
        let step = match steps.last().copied() {
            Some(Try { .. }) => match outcomes.next() {
                Some(&outcome) => {
                    elapsed += Duration::from_secs(1);
                    ladder.next(outcome, elapsed)
                }
                None => return steps,
            },
            Some(Pause(pause)) => {
                elapsed += pause;
                ladder.resumed(sites, elapsed)
            }
            Some(Relocate) => ladder.relocated(sites, false, elapsed),
            Some(AwaitServer(_)) => ladder.abandoned(),
            _ => return steps,
        };
        steps.push(step);
    }
}

#[test]
fn the_ladder_as_a_table() {
    let one = vec![vec![false]];
    let homed = vec![vec![false, false], vec![false]];
    let two = vec![vec![false], vec![false]];
    let (busy, restarting) = (Abort(AbortCode::VBUSY), Abort(AbortCode::VRESTARTING));
    let (salvaging, damaged) = (Abort(AbortCode::VSALVAGING), Abort(AbortCode::VSALVAGE));
    let (gone, offline) = (Abort(AbortCode::VNOVOL), Abort(AbortCode::VOFFLINE));
    let denied = AbortCode(13);
    let stopped = GivenUp(AbortCode::RX_USER_ABORT);
    let broken = GivenUp(AbortCode::RX_PROTOCOL_ERROR);
    type Row = (&'static str, Vec<Vec<bool>>, Vec<Outcome>, Vec<Step>);
    let table: Vec<Row> = vec![
        ("no site", vec![], vec![], vec![Fail(ErrorKind::NoVolume)]),
        ("down", vec![vec![true]], vec![], vec![at_most(60), Fail(ErrorKind::ServerUnreachable)]),
        ("down, other up", vec![vec![true], vec![false]], vec![], vec![to(1, 0)]),
        ("refused", one.clone(), vec![Abort(denied)], vec![to(0, 0), Reply(denied)]),
        (
            "old server",
            one.clone(),
            vec![Abort(AbortCode::RXGEN_OPCODE)],
            vec![to(0, 0), Reply(AbortCode::RXGEN_OPCODE)],
        ),
        (
            "silent",
            one.clone(),
            vec![NoReply],
            vec![to(0, 0), Relocate, at_most(59), Fail(ErrorKind::ServerUnreachable)],
        ),
        (
            "lost, then refused",
            one.clone(),
            vec![Lost, Abort(denied)],
            vec![to(0, 0), to(0, 0), Reply(denied)],
        ),
        (
            "lost again and again",
            one.clone(),
            vec![Lost, Lost, Lost],
            vec![to(0, 0), to(0, 0), to(0, 0), Relocate, Fail(ErrorKind::ServerUnreachable)],
        ),
        (
            "addresses, then sites",
            homed.clone(),
            vec![NoReply, Abort(AbortCode(-1)), NoReply],
            vec![to(0, 0), to(0, 1), to(1, 0), Relocate, at_most(57), Fail(ErrorKind::ServerUnreachable)],
        ),
        (
            "slow skips the site",
            homed,
            vec![Slow, Slow],
            vec![to(0, 0), to(1, 0), Relocate, Fail(ErrorKind::ServerUnreachable)],
        ),
        (
            "busy, one site",
            one.clone(),
            vec![busy, restarting, salvaging],
            vec![to(0, 0), SHORT, to(0, 0), LONG, to(0, 0), LONG, to(0, 0)],
        ),
        ("busy, other site", two.clone(), vec![busy, busy], vec![to(0, 0), to(1, 0), SHORT, to(0, 0)]),
        ("busy and dead", two.clone(), vec![busy, NoReply], vec![to(0, 0), to(1, 0), SHORT, to(0, 0)]),
        (
            "off line and dead",
            two.clone(),
            vec![offline, NoReply],
            vec![to(0, 0), Relocate, to(1, 0), SHORT, to(0, 0)],
        ),
        ("off line, other site", two.clone(), vec![offline], vec![to(0, 0), Relocate, to(1, 0)]),
        ("unknown here", two, vec![gone], vec![to(0, 0), Relocate, to(1, 0)]),
        (
            "off line for good",
            one.clone(),
            vec![offline, offline, offline],
            vec![to(0, 0), Relocate, SHORT, to(0, 0), Relocate, LONG, to(0, 0), Relocate, LONG, to(0, 0)],
        ),
        (
            "damaged for good",
            one.clone(),
            vec![damaged, damaged, damaged, damaged],
            vec![
                to(0, 0),
                Relocate,
                SHORT,
                to(0, 0),
                Relocate,
                LONG,
                to(0, 0),
                Relocate,
                LONG,
                to(0, 0),
                Relocate,
                Fail(ErrorKind::VolumeOffline),
            ],
        ),
        ("nonsense", one.clone(), vec![Malformed], vec![to(0, 0), Fail(ErrorKind::Protocol)]),
        ("given up here", one.clone(), vec![stopped], vec![to(0, 0), Reply(AbortCode::RX_USER_ABORT)]),
        (
            "the rules of Rx are broken, and then not",
            one.clone(),
            vec![broken, Abort(AbortCode(2))],
            vec![to(0, 0), to(0, 0), Reply(AbortCode(2))],
        ),
        (
            "the rules of Rx are broken for good",
            one.clone(),
            vec![broken, broken, broken],
            vec![to(0, 0), to(0, 0), to(0, 0), Fail(ErrorKind::Protocol)],
        ),
        ("closed", one, vec![Closed], vec![to(0, 0), Fail(ErrorKind::ShutDown)]),
    ];
    for (what, sites, outcomes, steps) in table {
        assert_eq!(play(&sites, &outcomes), steps, "{what}");
    }
}

#[test]
fn a_volume_that_moved_is_found_at_its_new_site() {
    let mut ladder = Ladder::new(LIMITS, &[vec![false]]);
    assert_eq!(ladder.first(), to(0, 0));
    assert_eq!(ladder.next(Abort(AbortCode::VMOVED), Duration::ZERO), Relocate);
    assert_eq!(ladder.relocated(&[vec![false], vec![false]], true, Duration::ZERO), to(0, 0));
    let mut ladder = Ladder::new(LIMITS, &[vec![false]]);
    assert_eq!(ladder.first(), to(0, 0));
    assert_eq!(ladder.next(NoReply, Duration::from_secs(12)), Relocate);
    assert_eq!(ladder.relocated(&[vec![false]], true, Duration::from_secs(12)), to(0, 0));
}

#[test]
fn waits_for_silent_servers_are_bounded_in_number() {
    let mut ladder = Ladder::new(LIMITS, &[vec![true]]);
    assert_eq!(ladder.first(), at_most(60), "known to be away");
    assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(9)), to(0, 0));
    assert_eq!(ladder.next(NoReply, Duration::from_secs(10)), Relocate);
    assert_eq!(ladder.relocated(&[vec![true]], false, Duration::from_secs(10)), at_most(50));
    for _ in 1..RETURNS_MAX - 1 {
        assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(11)), to(0, 0));
        assert_eq!(ladder.next(NoReply, Duration::from_secs(12)), at_most(48));
    }
    assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(13)), to(0, 0));
    assert_eq!(ladder.next(NoReply, Duration::from_secs(14)), Fail(ErrorKind::ServerUnreachable));
}

#[test]
fn no_step_begins_after_the_time_limit() {
    let mut ladder = Ladder::new(LIMITS, &[vec![false, false]]);
    ladder.first();
    assert_eq!(ladder.next(NoReply, Duration::from_secs(60)), Fail(ErrorKind::ServerUnreachable));
    let mut ladder = Ladder::new(LIMITS, &[vec![false]]);
    ladder.first();
    assert_eq!(ladder.next(Abort(AbortCode::VBUSY), Duration::from_secs(59)), Fail(ErrorKind::VolumeBusy));
}

#[test]
fn only_silence_and_network_codes_mark_an_address_down() {
    assert!(marks_down(NoReply));
    assert!(marks_down(Abort(AbortCode(-1))));
    let ours = GivenUp(AbortCode(-1));
    let aborts = [AbortCode::VBUSY, AbortCode::VRESTARTING].map(Abort);
    for outcome in [Lost, Slow, ours, Malformed, Closed].into_iter().chain(aborts) {
        assert!(!marks_down(outcome), "{outcome:?}");
    }
    assert!(!marks_down(Abort(AbortCode::RXGEN_OPCODE)));
}
