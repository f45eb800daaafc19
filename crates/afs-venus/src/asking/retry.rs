//! The retry ladder: what to do after each outcome of a call to the sites of a volume.
//!
//! A pure function from state and outcome to the next step: it neither calls nor waits, so a table can test it.
//! Source: docs/protocol/client.md "4. Choosing servers", docs/protocol/fileserver.md "14. Cache-manager side rules".

use std::time::Duration;

use afs_wire::error::AbortCode;

use crate::error::ErrorKind;

/// How one attempt ended, other than by success.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The address did not answer at all.
    Silent,
    /// It did not answer this call, but others that began later: it was restarted meanwhile, and knows nothing of it.
    Lost,
    /// It answered packets, but the call took too long.
    Slow,
    /// The server aborted the call.
    Abort(AbortCode),
    /// This side gave the call up, with this code: that says nothing about the server.
    GivenUp(AbortCode),
    /// The answer cannot be read.
    Nonsense,
    /// Our own transport is closed.
    Closed,
}

/// What to do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Call this address of this site.
    Try {
        /// Index of the site.
        site: usize,
        /// Index of the address within the site.
        address: usize,
    },
    /// Wait, then ask [`Ladder::resumed`].
    Pause(Duration),
    /// Ask the location service again, then [`Ladder::relocated`].
    Relocate,
    /// Nobody answers: wait, at most so long, until one of the servers does, then ask [`Ladder::returned`]. If none of them is
    /// worth waiting for, or the time is over, [`Ladder::abandoned`].
    Await(Duration),
    /// The abort is the call's own answer.
    Answer(AbortCode),
    /// Give up.
    Fail(ErrorKind),
}

/// What an attempt says about the address that was called.
pub fn marks_down(outcome: Outcome) -> bool {
    match outcome {
        Outcome::Silent => true,
        Outcome::Abort(code) => is_network(code),
        // What this side sends says nothing about the other one, whatever the code.
        Outcome::GivenUp(_) => false,
        Outcome::Lost | Outcome::Slow | Outcome::Nonsense | Outcome::Closed => false,
    }
}

/// The bounds the ladder keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// No pause begins that would end later than this after the start.
    pub total: Duration,
    /// The same for volumes that the servers call off line or unknown though the location service says they are there.
    pub offline: Duration,
    /// Length of the first pause; each further one is twice as long.
    pub pause: Duration,
    /// Length of the longest.
    pub pause_max: Duration,
}

/// The state of one call on its way down the ladder.
#[derive(Clone, Debug)]
pub struct Ladder {
    patience: Patience,
    sites: Vec<Site>,
    at: Option<(usize, usize)>,
    relocations: u32,
    pauses: u32,
    losses: u32,
    returns: u32,
    /// Nobody answered, and the location service was asked whether somebody else should be.
    asked_for_others: bool,
    /// What is reported when no site is left.
    complaint: ErrorKind,
}

#[derive(Clone, Debug)]
struct Site {
    addresses: Vec<Address>,
    /// Not to be asked again before the next pause or relocation.
    passed: bool,
    busy: bool,
    /// The volume is off line there, or not known though it should be.
    away: Option<ErrorKind>,
}

#[derive(Clone, Debug)]
struct Address {
    down: bool,
    tried: bool,
}

/// How often the location service is asked again before the next pause.
const RELOCATIONS_MAX: u32 = 2;
/// How often a call that was lost is made again.
const LOSSES_MAX: u32 = 2;
/// How often servers that fall silent again are waited for.
const RETURNS_MAX: u32 = 8;

impl Ladder {
    /// `sites` in order of preference; for each, whether each of its addresses is thought to be down.
    pub fn new(patience: Patience, sites: &[Vec<bool>]) -> Self {
        let complaint = if sites.is_empty() { ErrorKind::NoVolume } else { ErrorKind::ServerAway };
        Ladder {
            patience,
            sites: views(sites),
            at: None,
            relocations: 0,
            pauses: 0,
            losses: 0,
            returns: 0,
            asked_for_others: false,
            complaint,
        }
    }

    /// The first step.
    pub fn first(&mut self) -> Step {
        self.advance(Duration::ZERO)
    }

    /// The step after an attempt that ended so, `elapsed` after the start.
    pub fn next(&mut self, outcome: Outcome, elapsed: Duration) -> Step {
        match outcome {
            Outcome::Closed => Step::Fail(ErrorKind::ShutDown),
            Outcome::Nonsense => Step::Fail(ErrorKind::Protocol),
            Outcome::Lost => self.same_address(ErrorKind::ServerAway, elapsed),
            // Packets that are not the server's may have come in its name.
            Outcome::GivenUp(AbortCode::RX_PROTOCOL_ERROR) => self.same_address(ErrorKind::Protocol, elapsed),
            Outcome::GivenUp(code) => Step::Answer(code),
            Outcome::Silent => self.other_address(elapsed),
            Outcome::Slow => self.other_site(ErrorKind::ServerAway, elapsed),
            Outcome::Abort(code) => self.after_abort(code, elapsed),
        }
    }

    /// The step after a pause.
    pub fn resumed(&mut self, sites: &[Vec<bool>], elapsed: Duration) -> Step {
        self.sites = views(sites);
        self.relocations = 0;
        self.advance(elapsed)
    }

    /// The step after one of the servers that did not answer does again, or the volume is found at others.
    pub fn returned(&mut self, sites: &[Vec<bool>], elapsed: Duration) -> Step {
        self.returns += 1;
        self.resumed(sites, elapsed)
    }

    /// The step after nobody was waited for, or not any longer.
    pub fn abandoned(&self) -> Step {
        Step::Fail(self.complaint)
    }

    /// The step after the location service was asked again; `changed` if it says something else than before.
    pub fn relocated(&mut self, sites: &[Vec<bool>], changed: bool, elapsed: Duration) -> Step {
        if changed {
            self.sites = views(sites);
        } else if let Some((site, _)) = self.at {
            self.pass(site);
        }
        self.advance(elapsed)
    }

    fn after_abort(&mut self, code: AbortCode, elapsed: Duration) -> Step {
        match code {
            AbortCode::VBUSY | AbortCode::VRESTARTING | AbortCode::VSALVAGING => {
                if let Some(site) = self.site_at() {
                    site.busy = true;
                }
                self.other_site(ErrorKind::VolumeBusy, elapsed)
            }
            AbortCode::VNOSERVICE => self.other_site(ErrorKind::ServerAway, elapsed),
            AbortCode::VNOVOL | AbortCode::VMOVED | AbortCode::VOFFLINE | AbortCode::VSALVAGE => {
                self.complaint = ErrorKind::of_abort(code);
                if let Some(site) = self.site_at() {
                    site.away = Some(ErrorKind::of_abort(code));
                }
                self.somewhere_else(elapsed)
            }
            code if is_network(code) => self.other_address(elapsed),
            code => Step::Answer(code),
        }
    }

    fn somewhere_else(&mut self, elapsed: Duration) -> Step {
        if self.relocations < RELOCATIONS_MAX {
            self.relocations += 1;
            return Step::Relocate;
        }
        self.other_site(self.complaint, elapsed)
    }

    fn same_address(&mut self, complaint: ErrorKind, elapsed: Duration) -> Step {
        match self.at {
            Some((site, address)) if self.losses < LOSSES_MAX && elapsed < self.patience.total => {
                self.losses += 1;
                Step::Try { site, address }
            }
            _ => {
                self.complaint = complaint;
                self.advance(elapsed)
            }
        }
    }

    fn other_address(&mut self, elapsed: Duration) -> Step {
        if let Some((site, address)) = self.at
            && let Some(address) = self.sites.get_mut(site).and_then(|s| s.addresses.get_mut(address))
        {
            address.down = true;
        }
        self.complaint = ErrorKind::ServerAway;
        self.advance(elapsed)
    }

    fn other_site(&mut self, complaint: ErrorKind, elapsed: Duration) -> Step {
        self.complaint = complaint;
        if let Some((site, _)) = self.at {
            self.pass(site);
        }
        self.advance(elapsed)
    }

    fn pass(&mut self, site: usize) {
        if let Some(site) = self.sites.get_mut(site) {
            site.passed = true;
        }
    }

    fn site_at(&mut self) -> Option<&mut Site> {
        self.at.and_then(|(site, _)| self.sites.get_mut(site))
    }

    /// The best address not yet tried, or what is to be done when there is none.
    fn advance(&mut self, elapsed: Duration) -> Step {
        if elapsed >= self.patience.total {
            return Step::Fail(self.complaint);
        }
        let open = self.sites.iter().enumerate().filter(|(_, site)| !site.passed);
        let found = open
            .flat_map(|(s, site)| site.addresses.iter().enumerate().map(move |(a, address)| (s, a, address)));
        let found =
            found.filter(|(_, _, address)| !address.down && !address.tried).map(|(s, a, _)| (s, a)).next();
        match found {
            Some((site, address)) => self.take(site, address),
            None => self.exhausted(elapsed),
        }
    }

    fn take(&mut self, site: usize, address: usize) -> Step {
        self.at = Some((site, address));
        if let Some(address) = self.sites.get_mut(site).and_then(|s| s.addresses.get_mut(address)) {
            address.tried = true;
        }
        Step::Try { site, address }
    }

    fn exhausted(&mut self, elapsed: Duration) -> Step {
        if self.sites.iter().any(|site| site.busy) {
            self.complaint = ErrorKind::VolumeBusy;
            return self.pause_or_fail(elapsed, self.patience.total);
        }
        if let Some(kind) = self.sites.iter().find_map(|site| site.away) {
            self.complaint = kind;
            return self.pause_or_fail(elapsed, self.patience.offline);
        }
        if self.complaint != ErrorKind::ServerAway {
            return Step::Fail(self.complaint);
        }
        // Unless it was known before that nobody is there.
        if self.at.is_some() && !self.asked_for_others {
            self.asked_for_others = true;
            return Step::Relocate;
        }
        let is_down = |site: &Site| site.addresses.iter().any(|address| address.down);
        match self.sites.iter().any(is_down) && self.returns < RETURNS_MAX {
            true => Step::Await(self.patience.total - elapsed),
            false => Step::Fail(self.complaint),
        }
    }

    fn pause_or_fail(&mut self, elapsed: Duration, until: Duration) -> Step {
        let pause = self.patience.pause.saturating_mul(1 << self.pauses.min(16)).min(self.patience.pause_max);
        if elapsed + pause >= until {
            return Step::Fail(self.complaint);
        }
        self.pauses += 1;
        Step::Pause(pause)
    }
}

fn views(sites: &[Vec<bool>]) -> Vec<Site> {
    let address = |&down: &bool| Address { down, tried: false };
    let site = |addresses: &Vec<bool>| Site {
        addresses: addresses.iter().map(address).collect(),
        passed: false,
        busy: false,
        away: None,
    };
    sites.iter().map(site).collect()
}

/// Negative codes come from Rx or from a server in trouble, except the one that says "no such call", and the ones
/// about bytes that could not be decoded (docs/protocol/fileserver.md "9.1 Volume-package ("V") codes").
fn is_network(code: AbortCode) -> bool {
    code.0 < 0 && !(-457..=-450).contains(&code.0) && code != AbortCode::VRESTARTING
}

#[cfg(test)]
mod tests {
    use super::*;
    use Outcome::*;
    use Step::*;

    const PATIENCE: Patience = Patience {
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
        Await(Duration::from_secs(seconds))
    }

    /// Plays outcomes against a ladder; pauses and relocations are answered with the same sites.
    fn play(sites: &[Vec<bool>], outcomes: &[Outcome]) -> Vec<Step> {
        let mut ladder = Ladder::new(PATIENCE, sites);
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
                Some(Await(_)) => ladder.abandoned(),
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
            ("down", vec![vec![true]], vec![], vec![at_most(60), Fail(ErrorKind::ServerAway)]),
            ("down, other up", vec![vec![true], vec![false]], vec![], vec![to(1, 0)]),
            ("refused", one.clone(), vec![Abort(denied)], vec![to(0, 0), Answer(denied)]),
            (
                "old server",
                one.clone(),
                vec![Abort(AbortCode::RXGEN_OPCODE)],
                vec![to(0, 0), Answer(AbortCode::RXGEN_OPCODE)],
            ),
            (
                "silent",
                one.clone(),
                vec![Silent],
                vec![to(0, 0), Relocate, at_most(59), Fail(ErrorKind::ServerAway)],
            ),
            (
                "lost, then refused",
                one.clone(),
                vec![Lost, Abort(denied)],
                vec![to(0, 0), to(0, 0), Answer(denied)],
            ),
            (
                "lost again and again",
                one.clone(),
                vec![Lost, Lost, Lost],
                vec![to(0, 0), to(0, 0), to(0, 0), Relocate, Fail(ErrorKind::ServerAway)],
            ),
            (
                "addresses, then sites",
                homed.clone(),
                vec![Silent, Abort(AbortCode(-1)), Silent],
                vec![to(0, 0), to(0, 1), to(1, 0), Relocate, at_most(57), Fail(ErrorKind::ServerAway)],
            ),
            (
                "slow skips the site",
                homed,
                vec![Slow, Slow],
                vec![to(0, 0), to(1, 0), Relocate, Fail(ErrorKind::ServerAway)],
            ),
            (
                "busy, one site",
                one.clone(),
                vec![busy, restarting, salvaging],
                vec![to(0, 0), SHORT, to(0, 0), LONG, to(0, 0), LONG, to(0, 0)],
            ),
            ("busy, other site", two.clone(), vec![busy, busy], vec![to(0, 0), to(1, 0), SHORT, to(0, 0)]),
            ("busy and dead", two.clone(), vec![busy, Silent], vec![to(0, 0), to(1, 0), SHORT, to(0, 0)]),
            (
                "off line and dead",
                two.clone(),
                vec![offline, Silent],
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
            ("nonsense", one.clone(), vec![Nonsense], vec![to(0, 0), Fail(ErrorKind::Protocol)]),
            ("given up here", one.clone(), vec![stopped], vec![to(0, 0), Answer(AbortCode::RX_USER_ABORT)]),
            (
                "the rules of Rx are broken, and then not",
                one.clone(),
                vec![broken, Abort(AbortCode(2))],
                vec![to(0, 0), to(0, 0), Answer(AbortCode(2))],
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
        let mut ladder = Ladder::new(PATIENCE, &[vec![false]]);
        assert_eq!(ladder.first(), to(0, 0));
        assert_eq!(ladder.next(Abort(AbortCode::VMOVED), Duration::ZERO), Relocate);
        assert_eq!(ladder.relocated(&[vec![false], vec![false]], true, Duration::ZERO), to(0, 0));
        let mut ladder = Ladder::new(PATIENCE, &[vec![false]]);
        assert_eq!(ladder.first(), to(0, 0));
        assert_eq!(ladder.next(Silent, Duration::from_secs(12)), Relocate);
        assert_eq!(ladder.relocated(&[vec![false]], true, Duration::from_secs(12)), to(0, 0));
    }

    #[test]
    fn servers_that_fall_silent_are_tried_when_they_are_back_a_bounded_number_of_times() {
        let mut ladder = Ladder::new(PATIENCE, &[vec![true]]);
        assert_eq!(ladder.first(), at_most(60), "known to be away");
        assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(9)), to(0, 0));
        assert_eq!(ladder.next(Silent, Duration::from_secs(10)), Relocate);
        assert_eq!(ladder.relocated(&[vec![true]], false, Duration::from_secs(10)), at_most(50));
        for _ in 1..RETURNS_MAX - 1 {
            assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(11)), to(0, 0));
            assert_eq!(ladder.next(Silent, Duration::from_secs(12)), at_most(48));
        }
        assert_eq!(ladder.returned(&[vec![false]], Duration::from_secs(13)), to(0, 0));
        assert_eq!(ladder.next(Silent, Duration::from_secs(14)), Fail(ErrorKind::ServerAway));
    }

    #[test]
    fn nothing_begins_after_the_time_is_over() {
        let mut ladder = Ladder::new(PATIENCE, &[vec![false, false]]);
        ladder.first();
        assert_eq!(ladder.next(Silent, Duration::from_secs(60)), Fail(ErrorKind::ServerAway));
        let mut ladder = Ladder::new(PATIENCE, &[vec![false]]);
        ladder.first();
        assert_eq!(
            ladder.next(Abort(AbortCode::VBUSY), Duration::from_secs(59)),
            Fail(ErrorKind::VolumeBusy)
        );
    }

    #[test]
    fn only_silence_and_network_codes_mark_an_address_down() {
        assert!(marks_down(Silent));
        assert!(marks_down(Abort(AbortCode(-1))));
        let ours = GivenUp(AbortCode(-1));
        let aborts = [AbortCode::VBUSY, AbortCode::VRESTARTING].map(Abort);
        for outcome in [Lost, Slow, ours, Nonsense, Closed].into_iter().chain(aborts) {
            assert!(!marks_down(outcome), "{outcome:?}");
        }
        assert!(!marks_down(Abort(AbortCode::RXGEN_OPCODE)));
    }
}
