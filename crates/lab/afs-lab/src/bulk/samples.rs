//! Samples of each kind of operation, collected over the runs.

use super::cache::{Cold, Moved, Way};
use super::place::Place;
use super::report::{Measured, Operation, OthersTimes, ProcessTime};
use super::usage::Taken;
use crate::load::Repeated;
use crate::spread::Spread;
use std::time::Duration;

/// One operation of one run.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) taken: Taken,
    /// Processor times of the place's processes, in their order.
    pub(super) processes: Vec<Duration>,
    pub(super) moved: Option<Moved>,
    pub(super) others: Option<Repeated>,
}

/// A kind of operation. The place is given by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) operation: Operation,
    pub(super) place: usize,
    pub(super) way: Option<Way>,
}

/// Samples by kind, in the order in which the kinds came first. There are few kinds.
#[derive(Default)]
pub(super) struct Samples(Vec<(Kind, Option<Cold>, Vec<Sample>)>);

impl Samples {
    pub(super) fn add(&mut self, kind: Kind, cold_by: Option<Cold>, sample: Sample) {
        match self.0.iter_mut().find(|(known, ..)| *known == kind) {
            Some((_, _, samples)) => samples.push(sample),
            None => self.0.push((kind, cold_by, vec![sample])),
        }
    }

    /// Results with a file of `bytes`, sorted by place.
    pub(super) fn measured(mut self, bytes: u64, places: &[&Place]) -> Vec<Measured> {
        self.0.sort_by_key(|(kind, ..)| (kind.operation != Operation::Store, kind.place));
        let one = |(kind, cold_by, samples): &(Kind, Option<Cold>, Vec<Sample>)| {
            measured(*kind, *cold_by, samples, bytes, places.get(kind.place)?)
        };
        self.0.iter().filter_map(one).collect()
    }
}

fn measured(
    kind: Kind,
    cold_by: Option<Cold>,
    samples: &[Sample],
    bytes: u64,
    place: &Place,
) -> Option<Measured> {
    let time = |of: fn(&Taken) -> Duration| Spread::of(samples.iter().map(|sample| of(&sample.taken)));
    let rate = |sample: &Sample| bytes as f64 / 1e6 / sample.taken.elapsed.as_secs_f64().max(SHORTEST);
    let processes = place.processes.iter().enumerate().filter_map(|(number, process)| {
        let seconds = Spread::of(samples.iter().filter_map(|sample| sample.processes.get(number).copied()))?;
        let seconds_per_gb = seconds.times(1e9 / bytes as f64);
        Some(ProcessTime { name: process.name.clone(), pid: process.pid, seconds, seconds_per_gb })
    });
    Some(Measured {
        operation: kind.operation,
        directory: place.directory.clone(),
        way: kind.way,
        cold_by,
        elapsed_seconds: time(|taken| taken.elapsed)?,
        mb_per_second: Spread::of_values(samples.iter().map(rate))?,
        user_seconds: time(|taken| taken.user)?,
        system_seconds: time(|taken| taken.system)?,
        processes: processes.collect(),
        moved: samples.last()?.moved,
        others: others(samples.iter().filter_map(|sample| sample.others)),
    })
}

/// Times of the small operation over the runs; `None` if none was made.
pub(super) fn others(repeated: impl Iterator<Item = Repeated>) -> Option<OthersTimes> {
    let made: Vec<Repeated> = repeated.filter(|one| one.calls > 0).collect();
    Some(OthersTimes {
        calls: made.iter().map(|one| u64::from(one.calls)).sum(),
        p50_seconds: Spread::of_values(made.iter().map(|one| one.latency.p50))?,
        p99_seconds: Spread::of_values(made.iter().map(|one| one.latency.p99))?,
    })
}

/// A clock may stand still for as long as an empty file takes.
const SHORTEST: f64 = 1e-9;
