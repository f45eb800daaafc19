//! The Andrew benchmark at load 1: Tables I, VI and XIII of Howard et al. 1988, and the server's work.

use super::program::Program;
use super::{Mounted, OtherMount};
use crate::andrew::{Benchmark, Counters, MakeCommand, Phase, Probe, Report, SourceTree};
use crate::demands::Demands;
use crate::error::LabError;
use crate::sheet::{Cell, Sheet};
use crate::spread::Spread;
use std::path::Path;

/// Results on a local disk, and on the mounts that there are.
pub struct Benchmarked {
    /// On the local disk.
    pub local: Report,
    /// In the mount of Andrew.
    pub mounted: Option<Report>,
    /// In the other file systems, by their names.
    pub others: Vec<(String, Report)>,
}

/// A directory to run in.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    directory: &'a Path,
    probe: Option<&'a dyn Probe>,
}

/// The side of a directory on a local disk.
#[must_use]
pub fn side(directory: &Path) -> Side<'_> {
    Side { directory, probe: None }
}

impl Benchmarked {
    /// Runs the benchmark on a program of 70 files, whose source is on the local disk. The sides alternate.
    ///
    /// # Errors
    /// Those of the benchmark.
    pub fn measure(
        local: Side<'_>,
        mount: Option<&Mounted<'_>>,
        others: &[OtherMount<'_>],
        runs: u32,
    ) -> Result<Self, LabError> {
        let program = Program::write_in(local.directory)?;
        let tree = SourceTree::list(program.root())?;
        let mut all: Option<Self> = None;
        for _ in 0..runs {
            let on = |mount: &Mounted<'_>| {
                run(&tree, Side { directory: &mount.place.directory, probe: mount.probe })
            };
            let more = Self {
                local: run(&tree, local)?,
                mounted: mount.map(on).transpose()?,
                others: others
                    .iter()
                    .map(|other| Ok((other.name.to_owned(), on(&other.mounted)?)))
                    .collect::<Result<_, LabError>>()?,
            };
            match &mut all {
                None => all = Some(more),
                Some(all) => all.add(more),
            }
        }
        all.ok_or(LabError::Lost)
    }

    fn add(&mut self, more: Self) {
        self.local.add(more.local);
        let more = more.mounted.into_iter().chain(more.others.into_iter().map(|(_, report)| report));
        let all = self.mounted.iter_mut().chain(self.others.iter_mut().map(|(_, report)| report));
        all.zip(more).for_each(|(report, more)| report.add(more));
    }

    /// The sides beside the local disk: Andrew's under this name, and the others.
    fn beside<'a>(&'a self, andrew: &'a str) -> Vec<(&'a str, &'a Report)> {
        let mounted = self.mounted.as_ref().map(|report| (andrew, report));
        mounted.into_iter().chain(self.others.iter().map(|(name, report)| (name.as_str(), report))).collect()
    }

    /// Counters of the mount in the last run.
    fn counters(&self) -> Option<Counters> {
        counters(self.mounted.as_ref())
    }
}

/// Counters of the last run.
fn counters(report: Option<&Report>) -> Option<Counters> {
    report?.loads.first()?.counters()
}

fn run(tree: &SourceTree, side: Side<'_>) -> Result<Report, LabError> {
    let benchmark = Benchmark {
        source: tree,
        target: side.directory.to_owned(),
        loads: vec![1],
        runs: 1,
        make: MakeCommand::for_tree(tree),
        probe: side.probe,
        progress: &|_| {},
    };
    benchmark.run()
}

/// Times of a phase, or of all.
fn times(report: &Report, phase: Option<Phase>) -> Option<Spread> {
    let load = report.loads.first()?;
    phase.map_or_else(|| load.total(), |phase| load.phase(phase))
}

/// As many digits as times have.
pub(super) const PARTS: f64 = 1e4;

/// A row for each phase, the sum first, with three columns for each side.
fn by_phase(mut sheet: Sheet, constant: &[Cell], sides: &[(&str, &Report)]) -> Sheet {
    sides.iter().for_each(|(name, _)| sheet.add_spread(name, "s"));
    for phase in [None].into_iter().chain(Phase::ALL.map(Some)) {
        let name = phase.map_or("Overall".to_owned(), |phase| phase.to_string());
        let cells = sides.iter().flat_map(|(_, report)| Cell::of_spread(times(report, phase), PARTS));
        sheet
            .rows
            .push([Cell::Text(name)].into_iter().chain(constant.iter().cloned()).chain(cells).collect());
    }
    sheet
}

/// Table I: seconds by phase, here on the local disk, in the mount, and in the other file systems.
#[must_use]
pub fn phases(measured: &Benchmarked) -> Sheet {
    let mut sides = vec![("local", &measured.local)];
    sides.extend(measured.beside("andrew"));
    by_phase(Sheet::new(&[("phase", "")]), &[], &sides)
}

/// Table VI: seconds by phase in the mount at load 1.
#[must_use]
pub fn revised(measured: &Benchmarked) -> Option<Sheet> {
    let report = measured.mounted.as_ref()?;
    let mut sheet = Sheet::new(&[("load_units", "load units")]);
    let mut row = vec![Cell::from(1.0)];
    for phase in [None].into_iter().chain(Phase::ALL.map(Some)) {
        let name = phase.map_or("overall".to_owned(), |phase| phase.to_string().to_lowercase());
        sheet.add_spread(&name, "s");
        row.extend(Cell::of_spread(times(report, phase), PARTS));
    }
    sheet.rows.push(row);
    Some(sheet)
}

/// A number of the counters.
type Count = fn(&Counters) -> u64;

/// Table XIII: packets of one run, with the other file systems of which some were counted.
#[must_use]
pub fn packets(measured: &Benchmarked) -> Option<Sheet> {
    let counted = |report| counters(Some(report)).filter(|counters| counters.packets_sent > 0);
    let mut sides = vec![("andrew", "packets", counted(measured.mounted.as_ref()?)?)];
    for (name, report) in &measured.others {
        sides.extend(counted(report).map(|counters| (name.as_str(), "segments and datagrams", counters)));
    }
    let columns: Vec<_> =
        [("what", "")].into_iter().chain(sides.iter().map(|side| (side.0, side.1))).collect();
    let mut sheet = Sheet::new(&columns);
    let all: [(&str, Count); 4] = [
        ("total", |counters| counters.packets_sent + counters.packets_received),
        ("server_to_client", |counters| counters.packets_received),
        ("client_to_server", |counters| counters.packets_sent),
        ("calls", |counters| counters.calls),
    ];
    for (what, of) in all {
        // The calls of others are not counted.
        let cells = sides.iter().map(|side| of(&side.2) as f64);
        let cells = cells.map(|count| if count > 0.0 { count.into() } else { Cell::NotAtHand });
        sheet.rows.push([Cell::from(what)].into_iter().chain(cells).collect());
    }
    Some(sheet)
}

/// Table IX: calls of one run by operation, the most frequent first; `None` if the mount does not tell them.
#[must_use]
pub fn calls(measured: &Benchmarked) -> Option<Sheet> {
    by_operation(measured.counters()?)
}

fn by_operation(Counters { calls, calls_by_operation, .. }: Counters) -> Option<Sheet> {
    let mut all: Vec<(String, u64)> = calls_by_operation.into_iter().filter(|one| one.1 > 0).collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.1));
    let mut sheet = Sheet::new(&[("operation", ""), ("calls", "in one run"), ("share", "% of calls")]);
    sheet.rows.extend(all.into_iter().map(|(operation, count)| {
        let share = Cell::rounded(100.0 * count as f64 / calls as f64, 10.0);
        vec![Cell::Text(operation), (count as f64).into(), share]
    }));
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// What a run in the mount needs at load 1, if the server tells its processor time: that of the last run, with the median
/// of the times. Its disk is not known.
#[must_use]
pub fn demands(measured: &Benchmarked) -> Option<Demands> {
    demands_of(measured.mounted.as_ref()?)
}

/// The same in the other file systems whose server's time is known, by their names.
#[must_use]
pub fn other_demands(measured: &Benchmarked) -> Vec<(String, Demands)> {
    let of = |(name, report): &(String, Report)| Some((name.clone(), demands_of(report)?));
    measured.others.iter().filter_map(of).collect()
}

fn demands_of(report: &Report) -> Option<Demands> {
    let elapsed = times(report, None)?.median;
    let time_us = counters(Some(report))?.server_cpu_us;
    (time_us > 0).then_some(Demands { elapsed, processor: time_us as f64 / 1e6 })
}

/// Table XI: seconds by phase at load 1 in the other file systems, on Andrew if there is a mount, and on the local disk;
/// `None` without another file system.
#[must_use]
pub fn compared(measured: &Benchmarked) -> Option<Sheet> {
    let mut sides = measured.beside("andrew_warm");
    // The paper has NFS first.
    sides.rotate_left(usize::from(measured.mounted.is_some()));
    sides.push(("local", &measured.local));
    let sheet = Sheet::new(&[("phase", ""), ("load_units", "load units")]);
    (!measured.others.is_empty()).then(|| by_phase(sheet, &[1.0.into()], &sides))
}

/// Processor seconds of the server in one run.
#[must_use]
pub fn server_work(measured: &Benchmarked) -> Option<Sheet> {
    let time_us = measured.counters()?.server_cpu_us;
    // A server on another machine tells nothing.
    let seconds = (time_us > 0).then_some(time_us as f64 / 1e6)?;
    let mut sheet = Sheet::new(&[
        ("setup", ""),
        ("load_units", "load units"),
        ("cpu_s_per_run", "s"),
        ("disk_s_per_run", "s"),
    ]);
    sheet.rows.push(vec!["here".into(), 1.0.into(), seconds.into(), Cell::NotAtHand]);
    Some(sheet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_stand_in_the_order_of_their_number_with_shares_of_all() {
        let counted = [("CreateFile", 70), ("FetchStatus", 300), ("GetTime", 0), ("StoreData", 30)];
        let calls_by_operation = counted.map(|(name, count)| (name.to_owned(), count)).into();
        let sheet = by_operation(Counters { calls: 400, calls_by_operation, ..Counters::default() });
        let row = |name: &str, count: f64, share: f64| vec![name.into(), count.into(), share.into()];
        assert_eq!(
            sheet.map(|sheet| sheet.rows),
            Some(vec![
                row("FetchStatus", 300.0, 75.0),
                row("CreateFile", 70.0, 17.5),
                row("StoreData", 30.0, 7.5)
            ])
        );
        assert_eq!(by_operation(Counters { calls: 5, ..Counters::default() }), None);
    }
}
