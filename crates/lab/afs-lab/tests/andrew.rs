//! The benchmark on an ordinary directory.
#![allow(clippy::unwrap_used)]

use afs_lab::andrew::{Benchmark, Counters, MakeCommand, Phase, Probe, Progress, SourceTree};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

fn source(root: &Path) {
    fs::create_dir(root.join("lib")).unwrap();
    fs::write(root.join("lib/add.c"), "int add(int a, int b) { return a + b; }\n").unwrap();
    fs::write(root.join("main.c"), "int add(int, int);\nint main(void) { return add(0, 0); }\n").unwrap();
    fs::write(root.join("Makefile"), "all:\n\tcat main.c lib/add.c > built\n").unwrap();
    fs::write(root.join("large"), vec![7; 300_000]).unwrap();
    std::os::unix::fs::symlink("main.c", root.join("link")).unwrap();
}

struct Ticks(AtomicU64);

impl Probe for Ticks {
    fn read(&self) -> Option<Counters> {
        let calls = self.0.fetch_add(5, Ordering::Relaxed);
        Some(Counters { calls, ..Counters::default() })
    }
}

#[test]
fn every_phase_of_every_run_is_done_and_nothing_is_left() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    let tree = SourceTree::list(from.path()).unwrap();
    let (steps, ticks) = (AtomicU64::new(0), Ticks(AtomicU64::new(0)));
    let progress = |p: Progress| {
        steps.fetch_add(p.steps, Ordering::Relaxed);
    };
    let benchmark = Benchmark {
        source: &tree,
        target: to.path().to_owned(),
        loads: vec![1, 3],
        runs: 2,
        make: MakeCommand::for_tree(&tree),
        probe: Some(&ticks),
        progress: &progress,
    };
    let report = benchmark.run().unwrap();
    assert_eq!(report.make, "make");
    assert_eq!(report.loads.iter().map(|l| (l.load, l.runs.len())).collect::<Vec<_>>(), [(1, 2), (3, 2)]);
    assert_eq!(report.loads[0].counters().unwrap().calls, 5);
    assert!(report.loads[1].phase(Phase::Copy).unwrap().min > 0.0);
    assert_eq!(steps.load(Ordering::Relaxed), benchmark.steps());
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
    let text = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<afs_lab::andrew::Report>(&text).unwrap(), report);
}

fn run_with(make: MakeCommand, loads: Vec<u32>, runs: u32) -> Result<(), String> {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    source(from.path());
    let tree = SourceTree::list(from.path()).unwrap();
    let target = to.path().to_owned();
    let benchmark = Benchmark { source: &tree, target, loads, runs, make, probe: None, progress: &|_| {} };
    let result = benchmark.run().map(drop).map_err(|e| e.to_string());
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0, "something was left behind");
    result
}

#[test]
fn a_failed_build_is_an_error_and_leaves_nothing() {
    let error = run_with(MakeCommand::Shell("echo broken >&2; false".into()), vec![2], 1);
    assert!(error.unwrap_err().ends_with("ended with exit status: 1: broken"));
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    assert_eq!(
        run_with(MakeCommand::Nothing, vec![0], 1).unwrap_err(),
        "a load is 0; it must be between 1 and 256"
    );
    assert_eq!(
        run_with(MakeCommand::Nothing, vec![1], 0).unwrap_err(),
        "the number of runs is 0; it must be between 1 and 1000"
    );
}

#[test]
fn sources_without_a_makefile_become_an_archive() {
    let sources = vec!["main.c".into(), "lib/add.c".into()];
    run_with(MakeCommand::Archive(sources), vec![1], 1).unwrap();
}
