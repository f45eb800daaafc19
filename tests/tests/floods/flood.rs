//! Two equal floods in succession: latencies of honest clients, and memory of the server.

use std::process::Command;
use std::time::{Duration, Instant};

use afs_sim::SimRng;
use andrew_tests::live::process::{self, seconds};

use super::crowd::{ANSWERING, Crowd, PORTS, Source};
use super::honest_clients::Task;
use super::latencies::Latencies;
use super::setup::Setup;

/// Most memory that a second flood of the same size may add: memory that the allocator does not reuse at once.
const AGAIN_KIB_MAX: u64 = 24 << 10;
/// Datagrams sent between two readings of the clock.
const BURST: u64 = 25;

/// A flood.
pub struct Flood<'a> {
    /// Name in the printed report.
    pub name: &'static str,
    /// Datagrams a second, unless `ANDREW_FLOOD_RATE` is set.
    pub rate: u64,
    /// Fewest datagrams of one flood, for floods that must fill a table.
    pub at_least: u64,
    /// Most memory that the server may use for it, in KiB.
    pub growth_kib_max: u64,
    /// Additional tasks of honest users.
    pub also: &'a [Task<'a>],
    /// Sends one datagram or a few; returns how many.
    pub wave: &'a (dyn Fn(&Crowd, &mut SimRng) -> u64 + Sync),
}

/// How long each flood lasts: `ANDREW_FLOOD_SECONDS`, else 4.
pub fn round() -> Duration {
    seconds(number("ANDREW_FLOOD_SECONDS").unwrap_or(4))
}

/// Lets the calling thread run only where no other thread wants the processor, if `ANDREW_FLOOD_YIELDS` is set: a real attacker has
/// processors of its own. The lowest priority (nice 19) is not that: such a thread keeps its processor for milliseconds.
pub fn give_way(on: bool) {
    if number("ANDREW_FLOOD_YIELDS").is_some() {
        let policy = if on { "--idle" } else { "--other" };
        let thread = rustix::thread::gettid().to_string();
        let mut chrt = Command::new("chrt");
        chrt.args([policy, "--pid", "0", &thread]);
        process::run(chrt, seconds(10));
    }
}

/// Floods the cell twice while honest clients are at work.
///
/// Verifies that all their calls succeeded, that memory stayed within its bound and did not grow in the second flood,
/// and that addresses which proved nothing were sent at most three times the bytes received from them. The latencies
/// are printed, and compared with `ANDREW_FLOOD_P99_MAX` if it is set: they are meaningful only on a machine with no
/// other work.
pub fn run(setup: &mut Setup, flood: &Flood<'_>) {
    let (quiet, ()) = setup.honest.watch(flood.also, || std::thread::sleep(round().min(seconds(20)) / 2));
    println!("{}: without a flood: {quiet}", flood.name);
    quiet.assert_served("without a flood");
    let control = number("ANDREW_FLOOD_CONTROL").filter(|on| *on > 0).map(|_| control(setup, flood, &quiet));
    let before = setup.memory();
    let (mut growth, mut slowest) = ([0; 2], 0.0);
    for (number, growth) in (1..).zip(&mut growth) {
        let (latencies, sent) = setup.honest.watch(flood.also, || flood.pour(&setup.crowd, number));
        *growth = setup.memory().saturating_sub(before);
        let slowdown = latencies.slowdown(&quiet);
        slowest = f64::max(slowest, slowdown);
        println!(
            "{}: flood {number} of {sent} datagrams: {latencies}; {slowdown:.1} times the quiet p99; memory {} MiB and {} MiB more",
            flood.name,
            before >> 10,
            *growth >> 10
        );
        if let Some(control) = &control {
            println!(
                "{}: flood {number}: {:.1} times the p99 of the control",
                flood.name,
                latencies.slowdown(control)
            );
        }
        latencies.assert_served(&format!("{}, flood {number}", flood.name));
    }
    if let Some(most) = number_of("ANDREW_FLOOD_P99_MAX") {
        assert!(slowest <= most, "{}: the p99 is {slowest:.1} times that without a flood", flood.name);
    }
    let [first, second] = growth;
    assert!(first.max(second) <= flood.growth_kib_max, "{first} KiB, then {second} KiB more than before");
    assert!(
        second <= first + AGAIN_KIB_MAX,
        "{first} KiB more after the first flood, {second} KiB after the second"
    );
    let (sent, worst) = setup.crowd.amplification();
    println!(
        "{}: {sent} bytes came from silent hosts; the most that one got for a byte was {worst:.2}",
        flood.name
    );
    assert!(worst <= 3.0, "a silent host got {worst} times what came from it");
    assert!(!setup.cell.process.is_over(), "{}", setup.cell.process.said());
    let said = setup.cell.process.said();
    assert!(!said.contains("panicked"), "{said}");
    assert!(said.len() < 1 << 20, "it has said {} bytes, which begin: {:.2000}", said.len(), said);
}

/// Sends the datagrams of the first flood to the sink while honest clients are at work: measures the effect of the
/// attacker's program alone.
fn control(setup: &mut Setup, flood: &Flood<'_>, quiet: &Latencies) -> Latencies {
    setup.crowd.divert(true);
    let (latencies, sent) = setup.honest.watch(flood.also, || flood.pour(&setup.crowd, 1));
    setup.crowd.divert(false);
    let slowdown = latencies.slowdown(quiet);
    println!(
        "{}: control, {sent} datagrams to a sink: {latencies}; {slowdown:.1} times the quiet p99",
        flood.name
    );
    latencies.assert_served("control");
    latencies
}

impl<'a> Flood<'a> {
    /// A flood whose effect is checked by its test.
    pub fn of(name: &'static str, wave: &'a (dyn Fn(&Crowd, &mut SimRng) -> u64 + Sync)) -> Self {
        Self { name, rate: 0, at_least: 0, growth_kib_max: 0, also: &[], wave }
    }

    /// Sends the flood with that number; returns how many datagrams it had.
    pub fn pour(&self, crowd: &Crowd, number: u64) -> u64 {
        let rate = number_of("ANDREW_FLOOD_RATE").unwrap_or(self.rate as f64);
        let count = ((round().as_secs_f64() * rate) as u64).max(self.at_least);
        let mut rng = SimRng::new(number);
        give_way(true);
        let (began, mut sent) = (Instant::now(), 0);
        while sent < count {
            let end = sent + BURST;
            while sent < end {
                sent += (self.wave)(crowd, &mut rng).max(1);
            }
            let due = began + Duration::from_secs_f64(sent as f64 / rate);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        println!("{}: {sent} datagrams in {:.1} s", self.name, began.elapsed().as_secs_f64());
        give_way(false);
        sent
    }
}

/// One of the first `count` hosts, which never reply.
pub fn silent(rng: &mut SimRng, count: u16) -> Source {
    Source { host: rng.below(u64::from(count.min(ANSWERING))) as u16, port: rng.index(PORTS) }
}

/// One of the first `count` hosts that reply to pings.
pub fn answering(rng: &mut SimRng, count: u16) -> Source {
    Source { host: ANSWERING + rng.below(u64::from(count)) as u16, port: rng.index(PORTS) }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

pub fn number_of(variable: &str) -> Option<f64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}
