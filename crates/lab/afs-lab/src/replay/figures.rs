//! Figures 6 and 7: processor time of the file manager, and what the text says of it, by number of client-minutes.

use super::charges::{Charges, ReplayError};
use super::draw::{Draws, Sent};
use super::interval::Interval;
use super::measured::MeasuredCosts;
use super::queue::{Served, serve};
use super::systems::System;
use crate::model::{self, Inputs, SYSTEMS, TraceKind};
use crate::papers::{Cell, Sheet};

/// Draws of each number of client-minutes, as in the paper.
const DRAWS: u64 = 5;
/// Numbers of client-minutes that the text of section 6 and Figure 6 name.
const MINUTES: [u32; 9] = [10, 20, 25, 40, 50, 60, 80, 90, 100];
/// The paper's draws of AFS go further.
const AFS_MOST: u32 = 120;
/// A replay overruns its minute if it takes longer: the last request is always sent shortly before the end.
const OVERRUN: f64 = 60.6;

/// The draws of one number of client-minutes, served in each system.
struct Point {
    minutes: u32,
    /// For each system its own.
    draws: Vec<Vec<Served>>,
}

impl Point {
    fn of(draws: &Draws, charges: &Charges, systems: usize, minutes: u32, kind: TraceKind) -> Self {
        let mut point = Self { minutes, draws: vec![Vec::new(); systems] };
        for number in 0..DRAWS {
            let seed = u64::from(minutes) * 100 + number * 2 + u64::from(kind == TraceKind::Afs);
            let sent = draws.draw(minutes, seed);
            for (system, served) in point.draws.iter_mut().enumerate() {
                served.push(serve(sent.iter().filter_map(|one| work(charges, system, one))));
            }
        }
        point
    }

    fn interval(&self, system: usize, of: impl Fn(&Served) -> f64) -> Option<Interval> {
        Interval::of(&self.draws.get(system)?.iter().map(of).collect::<Vec<_>>())
    }

    fn mean(&self, system: usize, of: impl Fn(&Served) -> f64) -> f64 {
        self.interval(system, of).map_or(f64::NAN, |interval| interval.mean)
    }

    fn busy(&self, system: usize) -> f64 {
        self.mean(system, |served| served.busy)
    }
}

/// Arrival and work of a request that reaches the file manager, in seconds.
fn work(charges: &Charges, system: usize, sent: &Sent) -> Option<(f64, f64)> {
    Some((f64::from(sent.millisecond) / 1e3, charges.seconds(system, sent)?))
}

fn points(
    inputs: Inputs<'_>,
    kind: TraceKind,
    measured: Option<&MeasuredCosts>,
) -> Result<Vec<Point>, ReplayError> {
    let systems = System::all(measured);
    let charges = Charges::of(inputs, kind, &systems, measured)?;
    let draws = Draws::of(inputs, kind)?;
    let more = (kind == TraceKind::Afs).then_some(AFS_MOST);
    let minutes = MINUTES.into_iter().chain(more);
    Ok(minutes.map(|minutes| Point::of(&draws, &charges, systems.len(), minutes, kind)).collect())
}

/// Figure 6: the means that follow from Tables 5 and 7, and mean and 90 % interval of draws out of a generated trace.
///
/// # Errors
/// A number is not in the data.
pub fn figure6(inputs: Inputs<'_>) -> Result<Sheet, ReplayError> {
    let mut sheet = model::figure6(inputs)?;
    for kind in [TraceKind::Nfs, TraceKind::Afs] {
        let points = points(inputs, kind, None)?;
        for (system, name) in SYSTEMS.into_iter().enumerate() {
            let column = format!("{}_{name}_drawn", kind.column());
            sheet.columns.extend([column.clone(), format!("{column}_ci90")]);
            sheet.units.extend(["s".to_owned(), "s".to_owned()]);
            for row in &mut sheet.rows {
                let minutes = row.first().and_then(Cell::number);
                let point = points.iter().find(|point| Some(f64::from(point.minutes)) == minutes);
                row.extend(cells(point.and_then(|point| point.interval(system, |served| served.busy))));
            }
        }
    }
    Ok(sheet)
}

/// Figure 7: what the paper's text says of it, obtained here, and the points of the curves. A trace is left out if the
/// measured costs lack one of its operations.
///
/// # Errors
/// A number is not in the data, or the measured costs are of neither trace.
pub fn figure7(inputs: Inputs<'_>, measured: Option<&MeasuredCosts>) -> Result<Sheet, ReplayError> {
    let mut sheet =
        Sheet::new(&[("trace", ""), ("client_minutes", ""), ("what", ""), ("value", ""), ("value_ci90", "")]);
    let (mut lacking, systems) = (None, System::all(measured));
    for (kind, name) in [(TraceKind::Nfs, "NFS"), (TraceKind::Afs, "AFS")] {
        match points(inputs, kind, measured) {
            Ok(points) => {
                said(&mut sheet, name, &systems, &points);
                points.iter().for_each(|point| curve(&mut sheet, name, &systems, point));
            }
            Err(error @ ReplayError::NotMeasured(_)) => lacking = Some(error),
            Err(error) => return Err(error),
        }
    }
    lacking.filter(|_| sheet.rows.is_empty()).map_or(Ok(sheet), Err)
}

/// What the text says: savings at 90 client-minutes, overruns, and the largest ratios.
fn said(sheet: &mut Sheet, trace: &str, systems: &[System], points: &[Point]) {
    let mut row = |minutes: Cell, what: &str, value: Cell| {
        sheet.rows.push(vec![trace.into(), minutes, what.into(), value, Cell::from("")]);
    };
    if let Some(at90) = points.iter().find(|point| point.minutes == 90) {
        for (system, name) in systems.iter().map(|system| system.name()).enumerate().skip(1) {
            let less = 100.0 * (1.0 - at90.busy(system) / at90.busy(0));
            row(90.0.into(), &format!("{name} less than SAD by, %"), tenths(less));
        }
    }
    for (system, name) in systems.iter().map(|system| system.name()).enumerate() {
        let overran = |point: &&Point| point.mean(system, |served| served.elapsed) > OVERRUN;
        let first = points.iter().find(overran).map(|point| f64::from(point.minutes));
        row("".into(), &format!("first overrun, {name}"), first.map_or("none".into(), Cell::from));
    }
    for (system, name) in systems.iter().map(|system| system.name()).enumerate().skip(1) {
        let largest = points.iter().map(|point| point.busy(0) / point.busy(system)).fold(0.0, f64::max);
        row("".into(), &format!("largest SAD / {name}"), tenths(largest));
    }
}

fn curve(sheet: &mut Sheet, trace: &str, systems: &[System], point: &Point) {
    for (system, name) in systems.iter().map(|system| system.name()).enumerate() {
        let mut row = |what: &str, interval: Option<Interval>| {
            let what = format!("{name}, {what}");
            let head = [trace.into(), f64::from(point.minutes).into(), Cell::Text(what)];
            sheet.rows.push(head.into_iter().chain(cells(interval)).collect());
        };
        row("processor, s", point.interval(system, |served| served.busy));
        row("elapsed, s", point.interval(system, |served| served.elapsed));
        row("mean response, ms", point.interval(system, |served| served.response * 1e3));
    }
}

/// Mean and half interval with three decimals.
fn cells(interval: Option<Interval>) -> [Cell; 2] {
    let cell = |number: f64| Cell::from((number * 1e3).round() / 1e3);
    interval.map_or([Cell::NotAtHand, Cell::NotAtHand], |Interval { mean, half }| [cell(mean), cell(half)])
}

fn tenths(number: f64) -> Cell {
    Cell::from((number * 10.0).round() / 10.0)
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
