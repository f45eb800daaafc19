//! Loop over experiments: each is run, refused or found done, and its result is written before the next begins.

use super::folder::{FolderError, ResultFolder};
use super::measured::{Memo, latency, refused};
use super::outcome::{FORMAT, Outcome, RunResult};
use super::own::volumes;
use super::setting::Setting;
use crate::catalogue::{CostTable, Experiment, Generated, Method, Recomputed};
use crate::model::{self, Inputs, TraceKind};
use crate::papers::{PaperError, Sheet};
use crate::replay::{self, ReplayError};
use crate::trace::{self, Shape, Statistics};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// A step of the run, told to the caller.
pub enum Step<'a> {
    /// An experiment begins.
    Begins(&'a Experiment),
    /// One has ended.
    Ended(&'a Experiment, &'a RunResult),
    /// One has a result already.
    WasDone(&'a Experiment),
}

/// Runs the experiments in order. Those with a final result in the folder are left out, unless `again`.
/// Returns the number of those that ended with an error.
///
/// # Errors
/// A result cannot be written.
pub fn run(
    setting: &Setting<'_>,
    experiments: &[&'static Experiment],
    folder: &ResultFolder,
    again: bool,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<u32, FolderError> {
    let (mut failed, memo) = (0, Memo::default());
    for experiment in experiments {
        if setting.stop.load(Ordering::Acquire) {
            break;
        }
        let is_final = |result: RunResult| {
            result.is_final(&setting.environment.version, setting.quick)
                && has_these_costs(setting, experiment.method, &result.outcome)
                && (!experiment.method.uses_others() || result.environment.peers == setting.environment.peers)
        };
        if !again && folder.read(experiment.id).is_some_and(is_final) {
            tell(Step::WasDone(experiment));
            continue;
        }
        tell(Step::Begins(experiment));
        let result = one(setting, experiment, &memo);
        // What was interrupted has no result.
        if setting.stop.load(Ordering::Acquire) {
            break;
        }
        folder.write(&result)?;
        failed += u32::from(matches!(result.outcome, Outcome::Failed { .. }));
        tell(Step::Ended(experiment, &result));
    }
    Ok(failed)
}

/// Whether a result was made with the costs that this run has; of others, that they have none.
fn has_these_costs(setting: &Setting<'_>, method: Method, outcome: &Outcome) -> bool {
    let Outcome::Ran { notes, .. } = outcome else { return false };
    !method.uses_costs() || notes.contains(&costs_note(setting))
}

fn costs_note(setting: &Setting<'_>) -> String {
    let costs = setting.costs.map_or("those of Tables 3 and 4 at 150 MHz", |costs| &costs.what);
    format!("Costs: {costs}.")
}

fn one(setting: &Setting<'_>, experiment: &Experiment, memo: &Memo) -> RunResult {
    let (date, began) = ((setting.date)(), Instant::now());
    let outcome = outcome(setting, experiment.method, memo);
    RunResult {
        format: FORMAT,
        id: experiment.id.to_owned(),
        began: date,
        seconds: began.elapsed().as_secs_f64(),
        quick: setting.quick,
        environment: setting.environment.clone(),
        outcome,
    }
}

fn outcome(setting: &Setting<'_>, method: Method, memo: &Memo) -> Outcome {
    if method.needs_compiler() && !setting.environment.peers.contains_key("cc") {
        return refused("a C compiler (cc)");
    }
    if method.needs_mount() && setting.mount.is_none() {
        return refused("a directory in a mount of Andrew (--mount)");
    }
    if method.needs_other() && setting.others.is_empty() {
        return refused("another file system to compare with, such as NFS (--beside nfs=DIR)");
    }
    if method.needs_costs() && setting.costs.is_none() {
        return refused("costs measured on a server (--costs FILE, which `andrew-lab costs` writes)");
    }
    match method {
        Method::Description => Outcome::Description,
        Method::Lacks(what) => refused(what),
        Method::Recompute(what) => match recompute(setting, what) {
            Ok(sheet) => Outcome::Ran { sheet, notes: recomputed_notes(setting, method, what) },
            Err(error) => Outcome::Failed { error: error.to_string() },
        },
        Method::Prototype(what) => memo.prototype(setting, what),
        Method::Replay => replayed(setting),
        Method::Costs(table) => measured_costs(setting, table),
        Method::Benchmark(what) => memo.benchmark(setting, what),
        Method::Loads(what) => memo.loads(setting, what),
        Method::Compared(what) => memo.compared(setting, what),
        Method::Latency => latency(setting),
        Method::Layers(what) => memo.layers(setting, what),
        Method::Volumes => volumes(setting),
        Method::Fetch(what) => memo.fetch(setting, what),
        Method::Generate(what) => match generate(setting, what) {
            Ok(sheet) => Outcome::Ran { sheet, notes: generated_notes(setting.quick) },
            Err(error) => Outcome::Failed { error: error.to_string() },
        },
    }
}

/// Seed of the traces of a report.
const SEED: u64 = 1;
/// A quick run generates this part of a trace.
const QUICK_PART: u32 = 20;

fn generate(setting: &Setting<'_>, what: Generated) -> Result<Sheet, PaperError> {
    let inputs = Inputs::of(setting.papers)?;
    let statistics = |kind| {
        let minutes = Shape::of(inputs, kind)?.minutes / if setting.quick { QUICK_PART } else { 1 };
        Statistics::of(inputs, kind, SEED, minutes)
    };
    let (nfs, afs) = (statistics(TraceKind::Nfs)?, statistics(TraceKind::Afs)?);
    Ok(match what {
        Generated::Totals => trace::table2(&nfs, &afs),
        Generated::WorkDistribution => trace::figure4(&nfs, &afs),
    })
}

fn generated_notes(quick: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "Traces generated from seed {SEED} with the published means and shares; the forms of the distributions between \
         them are assumptions (exponential requests of a client-minute and AFS sizes)."
    )];
    if quick {
        notes.push(format!(
            "The first {QUICK_PART}th part of each trace; counts are multiplied by {QUICK_PART}."
        ));
    }
    notes
}

/// Figure 7.
fn replayed(setting: &Setting<'_>) -> Outcome {
    let sheet = Inputs::of(setting.papers)
        .map_err(ReplayError::from)
        .and_then(|inputs| replay::figure7(inputs, setting.costs));
    match sheet {
        Ok(sheet) => Outcome::Ran {
            sheet,
            notes: vec![
                format!("{DRAWN} Served in order of arrival by one processor."),
                costs_note(setting),
                "Neither disks, cold caches nor a limit of threads: the paper tells no times of disks, and its AFS server \
                 overran for lack of threads. So processor times are to be compared, overruns only in their order."
                    .into(),
                systems_note(setting),
            ],
        },
        Err(error) => Outcome::Failed { error: error.to_string() },
    }
}

/// What is known of the systems that the paper does not charge.
fn systems_note(setting: &Setting<'_>) -> String {
    let Some(costs) = setting.costs else {
        return "Server-integrated disks (SID) and NASD with groups have lines with measured costs alone (--costs): the paper gives them none.".into();
    };
    let writes = match costs.has_drive_writes() {
        true => {
            "Each write of NASD is charged a GetRoom and a CommitRoom of its size, an NFS write as a store of its own; the paper charges \
             nothing (NFS) or a FetchStatus (AFS). A mount stores less than 64 KiB by calls."
        }
        false => {
            "Writes of NASD are charged by the paper's rule: calls for rooms at drives were not measured."
        }
    };
    let sid = format!(
        "SID: bytes leave a server by its own data path; the calls are those of SAD. NASD charges each open a GetCapability, if that was measured. {writes}"
    );
    let Some(warm) = &costs.warm_client else {
        return format!(
            "{sid} NASD with groups has no line: the calls of a client were not counted (`andrew-lab costs --mount`)."
        );
    };
    let calls = warm.calls_per_minute.iter().map(|(call, count)| format!("{call} {count:.2}"));
    let calls: Vec<String> = calls.collect();
    let calls = if calls.is_empty() { "none".to_owned() } else { calls.join(", ") };
    format!(
        "{sid} NASD_groups, and opens of SID: calls for capabilities and layouts that a client made in a minute in which it opened {} \
         files in {} directories, counted for {} minutes after a first one: {calls}. Each busy client-minute is charged with these in the place of its opens.",
        warm.opens_per_minute, warm.directories, warm.minutes
    )
}

/// Costs measured on a server; `None` without any.
fn measured_costs(setting: &Setting<'_>, table: CostTable) -> Outcome {
    match setting.costs.and_then(|costs| replay::costs_table(table, costs)) {
        Some(sheet) => Outcome::Ran { sheet, notes: vec![costs_note(setting), MICROSECONDS.into()] },
        None => refused("these calls in the measured costs"),
    }
}

const MICROSECONDS: &str = "Microseconds of the server's process, user and system, for a call with warm caches; the paper counted \
                            cycles from the arrival of a request to its reply. NFS requests have the costs of the AFS calls \
                            that come nearest to them.";

const DRAWN: &str = "Mean and 90 % interval of 5 draws of busy client-minutes, generated with the published means; opens are \
                     spread evenly over the requests, and cost what Table 6 says (the NFS opens of Table 7 are charged more, against that rule).";

fn recomputed_notes(setting: &Setting<'_>, method: Method, what: Recomputed) -> Vec<String> {
    let mut notes = vec!["Computed from the paper's own inputs.".to_owned()];
    if method.uses_costs() {
        notes.push(costs_note(setting));
    }
    if method.uses_costs() && setting.costs.is_some() {
        notes.push(format!("Columns with 'here' are of the same requests at these costs. {MICROSECONDS}"));
        notes.push(systems_note(setting));
    }
    if what == Recomputed::Curves {
        notes.push(format!("Columns with 'drawn': {DRAWN}"));
    }
    notes
}

fn recompute(setting: &Setting<'_>, what: Recomputed) -> Result<Sheet, ReplayError> {
    let inputs = Inputs::of(setting.papers)?;
    let work = |kind| -> Result<Sheet, ReplayError> {
        let mut sheet = model::table7(inputs, kind)?;
        match setting.costs.map(|costs| replay::add_work(&mut sheet, inputs, kind, costs)) {
            // A trace of which a call was not measured has the paper's costs alone.
            None | Some(Ok(()) | Err(ReplayError::NotMeasured(_))) => Ok(sheet),
            Some(Err(error)) => Err(error),
        }
    };
    Ok(match what {
        Recomputed::NfsShares => model::table3a(inputs)?,
        Recomputed::AfsShares => model::table4a(inputs)?,
        Recomputed::BusyShares => model::table5(inputs)?,
        Recomputed::NfsRules => model::table6(inputs, TraceKind::Nfs)?,
        Recomputed::AfsRules => model::table6(inputs, TraceKind::Afs)?,
        Recomputed::NfsWork => work(TraceKind::Nfs)?,
        Recomputed::AfsWork => work(TraceKind::Afs)?,
        Recomputed::Curves => replay::figure6(inputs)?,
        Recomputed::Costs => model::derived_costs(inputs)?,
        Recomputed::Opens => model::derived_opens(inputs)?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::catalogue::{experiment, experiments};
    use crate::papers::papers;
    use crate::replay::MeasuredCosts;
    use crate::runs::Environment;
    use std::sync::atomic::AtomicBool;

    /// Runs experiments in a folder; returns what was told: ids of those that ended, and of those that were done.
    fn run_in(folder: &ResultFolder, ids: &[&str], quick: bool, again: bool) -> (Vec<String>, Vec<String>) {
        run_with(folder, ids, quick, again, None)
    }

    /// As [`run_in`], with measured costs.
    fn run_with(
        folder: &ResultFolder,
        ids: &[&str],
        quick: bool,
        again: bool,
        costs: Option<&MeasuredCosts>,
    ) -> (Vec<String>, Vec<String>) {
        let (papers, stop) = (papers().unwrap(), AtomicBool::new(false));
        let environment = Environment { version: "test".into(), ..Environment::default() };
        let date = || "2026-11-23T00:00:00Z".to_owned();
        let directory = tempfile::tempdir().unwrap();
        let setting = Setting {
            papers: &papers,
            environment,
            quick,
            date: &date,
            stop: &stop,
            local: directory.path(),
            costs,
            mount: None,
            program: None,
            peer: None,
            servers_are_apart: false,
            others: Vec::new(),
        };
        let chosen: Vec<_> = ids.iter().map(|id| experiment(id).unwrap()).collect();
        let (mut ended, mut done) = (Vec::new(), Vec::new());
        let failed = run(&setting, &chosen, folder, again, &mut |step| match step {
            Step::Begins(_) => {}
            Step::Ended(experiment, _) => ended.push(experiment.id.to_owned()),
            Step::WasDone(experiment) => done.push(experiment.id.to_owned()),
        });
        assert_eq!(failed.unwrap(), 0);
        (ended, done)
    }

    #[test]
    fn what_has_a_result_is_not_run_again_unless_it_was_another_kind_of_run() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(&directory.path().join("new/results")).unwrap();
        let (model, refused) = ("gibson97.table7-nfs", "howard88.table4");
        let first = run_in(&folder, &[model, refused], true, false);
        assert_eq!(first, (vec![model.into(), refused.into()], vec![]));
        assert!(matches!(folder.read(model).unwrap().outcome, Outcome::Ran { .. }));
        assert!(matches!(folder.read(refused).unwrap().outcome, Outcome::Refused { .. }));
        // A refusal may have been lifted since; a number stays.
        assert_eq!(
            run_in(&folder, &[model, refused], true, false),
            (vec![refused.into()], vec![model.into()])
        );
        assert_eq!(run_in(&folder, &[model], false, false).0, [model]);
        assert_eq!(run_in(&folder, &[model], false, true).0, [model]);
        std::fs::write(folder.path("gibson97.table7-nfs.json"), "{").unwrap();
        assert_eq!(run_in(&folder, &[model], false, false).0, [model], "a broken file is no result");
    }

    /// Without a mount, a compiler and measured costs: the others must have numbers, and these a reason.
    #[test]
    fn every_entry_of_the_papers_has_numbers_or_a_reason_after_a_quick_run_of_all() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(directory.path()).unwrap();
        let ids: Vec<&str> = experiments().map(|one| one.id).collect();
        run_in(&folder, &ids, true, false);
        let papers = papers().unwrap();
        for entry in papers.iter().flat_map(|paper| &paper.entries) {
            let (id, method) = (&entry.id, experiment(&entry.id).unwrap().method);
            match folder.read(id).unwrap().outcome {
                Outcome::Ran { sheet, notes } => {
                    assert!(method.runs() && !notes.is_empty(), "{id}");
                    assert!(sheet.rows.iter().flatten().any(|cell| cell.number().is_some()), "{id}");
                    assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()), "{id}");
                    assert_eq!(sheet.units.len(), sheet.columns.len(), "{id}");
                }
                Outcome::Refused { lacks } => {
                    let cannot = !method.runs()
                        || method.needs_mount()
                        || method.needs_other()
                        || method.needs_costs()
                        || method.needs_program()
                        || method.needs_compiler();
                    assert!(cannot && lacks.len() > 10, "{id}: {lacks}");
                }
                Outcome::Description => assert_eq!(method, Method::Description, "{id}"),
                Outcome::Failed { error } => unreachable!("{id}: {error}"),
            }
        }
    }

    #[test]
    fn loads_are_modelled_without_a_mount() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(directory.path()).unwrap();
        let ids = ["howard88.table7", "howard88.fig1", "howard88.fig2"];
        run_in(&folder, &ids, true, false);
        for id in ids {
            let Outcome::Ran { sheet, notes } = folder.read(id).unwrap().outcome else {
                unreachable!("{id}")
            };
            assert_eq!(sheet.rows.last().unwrap()[0].number(), Some(500.0), "{id}");
            assert!(notes[0].starts_with("Not measured: a model"), "{notes:?}");
            assert!(!sheet.columns.iter().any(|column| column.starts_with("measured")), "{id}");
        }
    }

    #[test]
    fn a_replay_and_table_7_are_made_again_with_other_costs() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(directory.path()).unwrap();
        let calls = ["FetchStatus", "StoreStatus", "FetchData", "StoreData", "RemoveFile", "BulkStatus"];
        let calls = calls.into_iter().chain(["CreateFile", "Rename", "Others"]);
        let calls: Vec<_> = calls.map(|call| format!("\"{call}\": [[0, 9]]")).collect();
        let text = format!("{{\"what\": \"a test\", \"calls\": {{{}}}}}", calls.join(", "));
        let costs = MeasuredCosts::parse(&text).unwrap();
        let ran = |costs| !run_with(&folder, &["gibson97.fig7"], true, false, costs).0.is_empty();
        assert_eq!([ran(None), ran(None), ran(Some(&costs)), ran(Some(&costs))], [true, false, true, false]);
        let Outcome::Ran { notes, .. } = folder.read("gibson97.fig7").unwrap().outcome else {
            unreachable!()
        };
        assert!(notes.contains(&"Costs: a test.".to_owned()), "{notes:?}");
        assert!(ran(None));

        let ran = |costs| {
            let ids = ["gibson97.table7-afs", "gibson97.table6-afs", "gibson97.table4d"];
            run_with(&folder, &ids, true, false, costs).0
        };
        let here = |id: &str| match folder.read(id).unwrap().outcome {
            Outcome::Ran { sheet, .. } => sheet.number("total", "NASD_here_pct"),
            other => unreachable!("{other:?}"),
        };
        let (table7, fixed) = ("gibson97.table7-afs", "gibson97.table4d");
        assert_eq!(ran(None), [table7, "gibson97.table6-afs", fixed]);
        assert_eq!(here(table7), None);
        assert_eq!(ran(Some(&costs)), [table7, fixed]);
        // All calls cost the same: what is left of them, and an open for each file and day.
        assert!(here(table7).is_some_and(|percent| (51.0..52.0).contains(&percent)), "{:?}", here(table7));
        assert!(matches!(folder.read(fixed).unwrap().outcome, Outcome::Ran { .. }));
        assert!(ran(Some(&costs)).is_empty());
    }

    #[test]
    fn every_recomputed_entry_gives_numbers() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(directory.path()).unwrap();
        let is_computed = |one: &&Experiment| matches!(one.method, Method::Recompute(_));
        let ids: Vec<&str> = experiments().filter(is_computed).map(|one| one.id).collect();
        assert_eq!(run_in(&folder, &ids, true, false).0.len(), 10);
        for id in ids {
            let Outcome::Ran { sheet, .. } = folder.read(id).unwrap().outcome else { unreachable!("{id}") };
            assert!(sheet.rows.iter().flatten().any(|cell| cell.number().is_some()), "{id}");
            assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()), "{id}");
        }
    }
}
