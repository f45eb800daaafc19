//! Loop over experiments: each is run, refused or found done, and its result is written before the next begins.

use super::folder::{FolderError, ResultFolder};
use super::measured::{Memo, latency, refused};
use super::outcome::{FORMAT, Outcome, RunResult};
use super::own::volumes;
use super::setting::Setting;
use crate::catalogue::{Experiment, Method};
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
    match method {
        Method::Prototype(what) => memo.prototype(setting, what),
        Method::Benchmark(what) => memo.benchmark(setting, what),
        Method::Loads(what) => memo.loads(setting, what),
        Method::Compared => memo.compared(setting),
        Method::Latency => latency(setting),
        Method::Layers(what) => memo.layers(setting, what),
        Method::Volumes => volumes(setting),
        Method::Fetch(what) => memo.fetch(setting, what),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::catalogue::{PrototypeTable, experiments};
    use crate::runs::Environment;
    use std::sync::atomic::AtomicBool;

    /// Runs experiments in a folder; returns what was told: ids of those that ended, and of those that were done.
    fn run_in(folder: &ResultFolder, ids: &[&str], quick: bool, again: bool) -> (Vec<String>, Vec<String>) {
        let stop = AtomicBool::new(false);
        let environment = Environment { version: "test".into(), ..Environment::default() };
        let date = || "2026-11-23T00:00:00Z".to_owned();
        let directory = tempfile::tempdir().unwrap();
        let setting = Setting {
            environment,
            quick,
            date: &date,
            stop: &stop,
            local: directory.path(),
            mount: None,
            program: None,
            peer: None,
            servers_are_apart: false,
            others: Vec::new(),
        };
        let chosen: Vec<_> = experiments().filter(|one| ids.contains(&one.id)).collect();
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
        let (refused, local) = ("howard88.table4", "howard88.table14");
        let first = run_in(&folder, &[local, refused], true, false);
        assert_eq!(first, (vec![refused.into(), local.into()], vec![]));
        assert!(matches!(folder.read(local).unwrap().outcome, Outcome::Ran { .. }));
        assert!(matches!(folder.read(refused).unwrap().outcome, Outcome::Refused { .. }));
        // A refusal may have been lifted since; a number stays.
        assert_eq!(
            run_in(&folder, &[local, refused], true, false),
            (vec![refused.into()], vec![local.into()])
        );
        assert_eq!(run_in(&folder, &[local], false, false).0, [local]);
        assert_eq!(run_in(&folder, &[local], false, true).0, [local]);
        std::fs::write(folder.path("howard88.table14.json"), "{").unwrap();
        assert_eq!(run_in(&folder, &[local], false, false).0, [local], "a broken file is no result");
    }

    /// Without a mount, a compiler and the program: the others must have numbers, and these a reason.
    #[test]
    fn every_experiment_has_numbers_or_a_reason_after_a_quick_run_of_all() {
        let directory = tempfile::tempdir().unwrap();
        let folder = ResultFolder::create(directory.path()).unwrap();
        let ids: Vec<&str> = experiments().map(|one| one.id).collect();
        run_in(&folder, &ids, true, false);
        for Experiment { id, method } in experiments() {
            match folder.read(id).unwrap().outcome {
                Outcome::Ran { sheet, notes, .. } => {
                    assert!(!notes.is_empty(), "{id}");
                    assert!(sheet.rows.iter().flatten().any(|cell| cell.number().is_some()), "{id}");
                    assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()), "{id}");
                    assert_eq!(sheet.units.len(), sheet.columns.len(), "{id}");
                }
                Outcome::Refused { lacks } => {
                    let cannot = match method {
                        Method::Volumes | Method::Loads(_) => true,
                        Method::Prototype(what) => *what != PrototypeTable::Calls,
                        _ => method.needs_mount() || method.needs_other() || method.needs_compiler(),
                    };
                    assert!(cannot && lacks.len() > 10, "{id}: {lacks}");
                }
                Outcome::Failed { error } => unreachable!("{id}: {error}"),
            }
        }
    }
}
