//! Table II of Howard et al. 1988 for the benchmark's script: percent of calls by type.

use super::call::ServerNumber;
use super::cell::{Cell, InProcess, place};
use super::script::{Script, make_source};
use super::server::Work;
use super::venus::Venus;
use crate::andrew::Phase;
use crate::error::LabError;
use crate::measure::Program;
use crate::scratch::Scratch;
use crate::sheet::{Cell as Value, Sheet};
use std::path::Path;
use std::time::Duration;

/// Columns of Table II after the total.
const CALLS: [&str; 7] = ["TestAuth", "GetFileStat", "Fetch", "Store", "SetFileStat", "ListDir", "others"];

/// Distribution of calls, with what else the servers did in the first run.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Runs and phases as rows, with Table II's columns.
    pub sheet: Sheet,
    /// Calls of the first run.
    pub calls: u64,
    /// Components of path names that the servers resolved.
    pub components: u64,
    /// Status files that they read.
    pub admin_reads: u64,
    /// Processes that they have in the end.
    pub processes: usize,
}

/// Counts the calls of two runs of the benchmark by a client, one after the other, into two targets: its cache holds
/// the source in the second. The first of two servers has the root, with a stub for what the second has: all files. The phases are
/// those of the first. Servers and client are in this process, with their files in a directory that is removed.
///
/// # Errors
/// The files of servers, client or source cannot be written.
pub fn table2(local: &Path) -> Result<Counted, LabError> {
    let scratch = Scratch::make_in(local, "andrew-lab-prototype")?;
    let cell = Cell::in_directory(scratch.path(), 2);
    let client = |number| {
        let directory = scratch.path().join(format!("cache{number}"));
        Venus::of(cell.client(number), &directory).map_err(LabError::prototype)
    };
    let mut operator = client(0)?;
    place(&mut operator.routes, "usr", ServerNumber(1))?;
    make_source(&mut operator, &Program::write_in(scratch.path())?)?;
    cell.take_work();
    let mut venus = client(1)?;
    let phases = run(&cell, &mut venus, "usr/target1")?;
    let (first, again) = (sum(&phases), sum(&run(&cell, &mut venus, "usr/target2")?));
    let mut sheet = Sheet::new(&[("server", ""), ("total_calls", "calls")]);
    sheet.columns.extend(CALLS.map(str::to_owned));
    sheet.units.extend(CALLS.map(|_| "%".to_owned()));
    sheet.rows.push(row("a run", &first));
    sheet.rows.push(row("another run, the source cached", &again));
    sheet.rows.extend(phases.iter().map(|(phase, work)| row(&format!("of the first run, {phase}"), work)));
    let calls = first.calls.values().sum();
    let (components, admin_reads, processes) = (first.components, first.admin_reads, cell.processes());
    Ok(Counted { sheet, calls, components, admin_reads, processes })
}

/// Runs all phases; the work of each.
fn run(cell: &Cell, venus: &mut Venus<InProcess>, target: &str) -> Result<Vec<(Phase, Work)>, LabError> {
    let mut phases = Vec::new();
    for phase in Phase::ALL {
        Script { venus: &mut *venus, target, think: Duration::ZERO }.phase(phase)?;
        phases.push((phase, cell.take_work()));
    }
    Ok(phases)
}

fn sum(phases: &[(Phase, Work)]) -> Work {
    let mut all = Work::default();
    phases.iter().for_each(|(_, work)| all.add(work));
    all
}

fn row(name: &str, work: &Work) -> Vec<Value> {
    let count = |call: &str| work.calls.get(call).copied().unwrap_or_default() as f64;
    let total: f64 = CALLS.into_iter().map(count).sum();
    let percents = CALLS.into_iter().map(|call| Value::from((1000.0 * count(call) / total).round() / 10.0));
    [Value::from(name), total.into()].into_iter().chain(percents).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    #[test]
    fn checks_and_statuses_are_most_calls_as_in_the_paper() {
        let Counted { sheet, calls, components, admin_reads, processes } =
            table2(tempfile::tempdir().unwrap().path()).unwrap();
        let percent = |row: &str, call| sheet.number(row, call).unwrap();
        assert!(percent("a run", "TestAuth") + percent("a run", "GetFileStat") > 66.0, "{sheet:?}");
        for row in &sheet.rows {
            let sum: f64 = row[2..].iter().filter_map(Value::number).sum();
            assert!((sum - 100.0).abs() < 0.4, "{row:?}");
        }
        // The source is fetched once; of a second run nothing is.
        assert_eq!(percent("another run, the source cached", "Fetch"), 0.0);
        assert_eq!(percent("of the first run, ReadAll", "TestAuth"), 100.0);
        assert!(components > 2 * calls && admin_reads < calls);
        // The operator, who made the source, and the client, at both servers: the stub sent them from the first.
        assert_eq!(processes, 4);
    }

    #[test]
    fn the_phases_are_the_run() {
        let sheet = table2(tempfile::tempdir().unwrap().path()).unwrap().sheet;
        let total = |row: &str| sheet.number(row, "total_calls").unwrap();
        let phases: f64 =
            Phase::ALL.into_iter().map(|phase| total(&format!("of the first run, {phase}"))).sum();
        assert_eq!(phases, total("a run"));
        // 70 files: a status and an open of the source, a status and a store of the target.
        assert_eq!(total("of the first run, Copy"), 280.0);
    }
}
