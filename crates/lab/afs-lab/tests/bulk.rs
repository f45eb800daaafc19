//! Stores and fetches of large files in ordinary directories.
#![allow(clippy::unwrap_used)]

use afs_lab::LabError;
use afs_lab::bulk::{
    Bulk, Cache, Cold, KernelCache, Measured, Moved, Operation, Place, Process, Report, StatOf, Way,
};
use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KERNEL: KernelCache = KernelCache { is_other_client: false };

fn place(directory: &Path, cache: impl Cache + 'static) -> Place {
    let process = Process::new("client".into(), std::process::id()).unwrap();
    Place { directory: directory.to_owned(), cache: Box::new(cache), processes: vec![process] }
}

/// Runs a measurement; whatever its outcome, it leaves nothing behind.
fn run(writer: &Place, readers: &[Place], sizes: &[u64], runs: u32) -> Result<Report, String> {
    let (told, never) = (Cell::new(0), AtomicBool::new(false));
    let bulk = Bulk {
        writer,
        readers,
        sizes: sizes.to_vec(),
        runs,
        other: Some(&StatOf(writer.directory.clone())),
        progress: &|progress| told.set(told.get() + progress.bytes),
        stop: &never,
    };
    let report = bulk.run().map_err(|error| error.to_string());
    assert_eq!(fs::read_dir(&writer.directory).unwrap().count(), 0, "something was left behind");
    if report.is_ok() {
        assert_eq!(told.get(), bulk.bytes());
    }
    report
}

#[test]
fn a_file_is_stored_and_fetched_in_every_run_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let report = run(&place(folder.path(), KERNEL), &[], &[1, (2 << 20) + 7], 2).unwrap();
    assert_eq!(report.sizes.iter().map(|size| size.size_bytes).collect::<Vec<_>>(), [1, (2 << 20) + 7]);
    for size in &report.sizes {
        let seen: Vec<Operation> = size.measured.iter().map(|one| one.operation).collect();
        assert_eq!(seen, [Operation::Store, Operation::ColdFetch, Operation::WarmFetch]);
        for Measured { elapsed_seconds, mb_per_second, processes, others, .. } in &size.measured {
            assert!(elapsed_seconds.min > 0.0 && elapsed_seconds.max >= elapsed_seconds.median);
            assert!(mb_per_second.min > 0.0);
            assert_eq!((processes.len(), &*processes[0].name), (1, "client"));
            assert!(others.is_none_or(|others| others.calls > 0));
        }
        let cold: Vec<Option<Cold>> = size.measured.iter().map(|one| one.cold_by).collect();
        assert_eq!(cold, [None, Some(Cold::PagesDropped), None]);
    }
    assert_eq!(report.others_idle.unwrap().calls, 4000);
    let text = serde_json::to_string(&report).unwrap();
    let again = serde_json::from_str::<Report>(&text).unwrap();
    assert_eq!((again.runs, again.sizes.len()), (2, 2));
    assert!(text.contains("\"cold_by\":\"pages_dropped\"") && !text.contains("null"), "{text}");
}

/// A cache with two ways, which tells what was moved; every second time it is flushed it keeps the file.
struct Stubborn {
    flushes: AtomicU64,
    asked: AtomicU64,
    fetched: AtomicU64,
    keeps: bool,
}

impl Stubborn {
    fn new(keeps: bool) -> Self {
        let [flushes, asked, fetched] = [(); 3].map(|()| AtomicU64::new(0));
        Self { flushes, asked, fetched, keeps }
    }
}

impl Cache for Stubborn {
    fn ways(&self) -> &[Way] {
        &[Way::Cached, Way::Bypassed]
    }

    fn make_cold(&self, file: &Path, _: Way) -> Result<Cold, LabError> {
        let length = file.metadata().unwrap().len();
        if !self.keeps && self.flushes.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            self.fetched.fetch_add(length, Ordering::Relaxed);
        }
        Ok(Cold::Flushed)
    }

    /// Asked before and after each operation.
    fn moved(&self) -> Option<Moved> {
        let is_after = self.asked.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let fetched_bytes = if is_after { self.fetched.swap(0, Ordering::Relaxed) } else { 0 };
        Some(Moved { fetched_bytes, ..Moved::default() })
    }
}

#[test]
fn a_fetch_from_a_cache_that_kept_the_file_is_repeated_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let never = AtomicBool::new(false);
    for keeps in [false, true] {
        let writer = place(folder.path(), Stubborn::new(keeps));
        let bulk = Bulk {
            writer: &writer,
            readers: &[],
            sizes: vec![100_000],
            runs: 1,
            other: None,
            progress: &|_| {},
            stop: &never,
        };
        let report = bulk.run();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        match report {
            Ok(report) => {
                assert!(!keeps);
                let cold: Vec<&Measured> = report.sizes[0]
                    .measured
                    .iter()
                    .filter(|one| one.operation == Operation::ColdFetch)
                    .collect();
                assert_eq!(
                    cold.iter().map(|one| one.way.unwrap()).collect::<Vec<_>>(),
                    [Way::Cached, Way::Bypassed]
                );
                assert!(cold.iter().all(|one| one.moved.unwrap().fetched_bytes == 100_000));
            }
            Err(error) => {
                assert!(keeps);
                assert!(error.to_string().contains("is still cached after it was flushed"), "{error}");
            }
        }
    }
}

#[test]
fn files_are_fetched_in_other_directories_that_show_them() {
    let folder = tempfile::tempdir().unwrap();
    let (to, from) = (folder.path().join("to"), folder.path().join("from"));
    fs::create_dir(&to).unwrap();
    symlink("to", &from).unwrap();
    let readers = [place(&from, KernelCache { is_other_client: true }), place(&to, KERNEL)];
    let report = run(&place(&to, KERNEL), &readers, &[300_000], 3).unwrap();
    let fetches = &report.sizes[0].measured[1..];
    let seen: Vec<_> = fetches.iter().map(|one| (one.directory.as_path(), one.operation)).collect();
    let [cold, warm] = [Operation::ColdFetch, Operation::WarmFetch];
    assert_eq!(seen, [(from.as_path(), cold), (&from, warm), (&to, cold), (&to, warm)]);
    assert_eq!(fetches[0].cold_by, Some(Cold::OtherClient));

    let elsewhere = tempfile::tempdir().unwrap();
    let error = run(&place(&to, KERNEL), &[place(elsewhere.path(), KERNEL)], &[1], 1).unwrap_err();
    assert!(error.starts_with("open ") && error.contains("No such file or directory"), "{error}");
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(&place(folder.path(), KERNEL), &[], &[1], 0).unwrap_err();
    assert_eq!(error, "the number of runs is 0; it must be between 1 and 1000");
}

#[test]
fn an_end_in_the_middle_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (writer, stop) = (place(folder.path(), KERNEL), AtomicBool::new(false));
    for last in [Operation::Store, Operation::ColdFetch, Operation::WarmFetch] {
        stop.store(false, Ordering::Release);
        let bulk = Bulk {
            writer: &writer,
            readers: &[],
            sizes: vec![3 << 20],
            runs: 1,
            other: None,
            progress: &|progress| {
                if progress.operation == last && progress.bytes > 0 {
                    stop.store(true, Ordering::Release);
                }
            },
            stop: &stop,
        };
        assert!(matches!(bulk.run(), Err(LabError::Stopped)), "{last}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{last}");
    }
}
