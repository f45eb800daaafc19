//! Outcomes of measured experiments. What several entries share is measured once in a run.

use super::outcome::Outcome;
use super::own::ran_note;
use super::setting::Setting;
use crate::LabError;
use crate::bulk::{KernelCache, Place};
use crate::catalogue::{Benchmarks, FetchTests, ManyClients};
use crate::clients::{self, PrototypeRan, Ran};
use crate::demands::Demands;
use crate::layers::Layers;
use crate::measure::{self, Benchmarked, Fetches, Latencies, Mounted};
use crate::sheet::Sheet;
use std::cell::OnceCell;

/// Measurements of this run, or why they failed.
#[derive(Default)]
pub(super) struct Memo {
    benchmarked: OnceCell<Result<Benchmarked, String>>,
    fetches: OnceCell<Result<Fetches, String>>,
    pub(super) clients: OnceCell<Result<Option<Ran>, String>>,
    pub(super) prototype: OnceCell<Result<PrototypeRan, String>>,
    pub(super) layers: OnceCell<Result<Layers, String>>,
}

/// Name of Andrew's mount among what runs need, and of the clients that were run as processes.
const ANDREW: &str = "andrew";
const RAN: &str = "ran";

fn runs(setting: &Setting<'_>) -> u32 {
    if setting.quick { 1 } else { 3 }
}

/// What Table IX's numbers here are of.
const ONE_RUN: &str = "Calls of one client in the last run of the benchmark: its own distribution, not that of many servers in days \
                       of use. What a client does beside the program (time, keeping promises) is in it.";

/// What a packet is that no server of Andrew's has told.
const NAMESPACE: &str = "Packets of other file systems, and of Andrew where its server runs elsewhere, are the TCP segments and UDP \
                         datagrams of this machine's network namespace during a run: those of other programs are among them, \
                         and those of a client in another namespace are not.";

/// Where the servers are.
fn machines(setting: &Setting<'_>) -> &'static str {
    if setting.servers_are_apart {
        "The servers run on another machine, or outside of this one where it is emulated: the times of the mounts are to be \
         compared with one another, and the servers' processor time not with them. Where this one is emulated, its clients \
         are slow and the servers are not: a server then has room for more of them than it would."
    } else {
        "Client and server share this machine."
    }
}

impl Memo {
    fn benchmarked(&self, setting: &Setting<'_>) -> &Result<Benchmarked, String> {
        self.benchmarked.get_or_init(|| {
            let local = measure::side(setting.local);
            let measured =
                Benchmarked::measure(local, setting.mount.as_ref(), &setting.others, runs(setting));
            measured.map_err(|error| error.to_string())
        })
    }

    /// What a run in the mount needs, if there are a mount and a compiler.
    fn demands(&self, setting: &Setting<'_>) -> Result<Option<Demands>, String> {
        if setting.mount.is_none() || !setting.environment.peers.contains_key("cc") {
            return Ok(None);
        }
        self.benchmarked(setting).as_ref().map(measure::demands).map_err(String::clone)
    }

    /// Many clients at once: what a run needs alone, and what was run.
    pub(super) fn loads(&self, setting: &Setting<'_>, what: ManyClients) -> Outcome {
        let ran = match what {
            ManyClients::Server => self.by_load(setting),
            ManyClients::Relative => {
                self.relative(setting).map(|ran| ran.map(|(sheet, note)| (sheet, note, None)))
            }
        };
        let (here, ran) = match self.demands(setting).and_then(|here| Ok((here, ran?))) {
            Ok((None, None)) => return refused("a directory in a mount of Andrew (--mount)"),
            Ok(both) => both,
            Err(error) => return Outcome::Failed { error },
        };
        let (sheet, notes, clients) = ran.map_or_else(
            || (Sheet::default(), Vec::new(), None),
            |(sheet, note, clients)| (sheet, vec![note], clients),
        );
        let demands = [(ANDREW, here), (RAN, clients)];
        let demands = demands.into_iter().filter_map(|(name, one)| Some((name.to_owned(), one?)));
        Outcome::Ran { sheet, notes, demands: demands.collect() }
    }

    /// What was run of Table VII and Figure 2, what is to be said of it, and what one of these clients needs alone.
    fn by_load(&self, setting: &Setting<'_>) -> Result<Option<(Sheet, String, Option<Demands>)>, String> {
        let many = self.clients(setting).as_ref().map_err(String::clone)?;
        Ok(many.as_ref().map(|many| (clients::by_load(many), ran_note(many), Some(many.demands))))
    }

    /// What a run needs on NFS and Andrew, and in other file systems.
    pub(super) fn compared(&self, setting: &Setting<'_>) -> Outcome {
        match self.compared_here(setting) {
            Err(error) => Outcome::Failed { error },
            Ok(here) if here.is_empty() => refused(
                "the processor time of the other file system's server (--beside-server nfs=PID), or a C compiler",
            ),
            Ok(demands) => {
                let apart = setting.servers_are_apart.then(|| machines(setting).to_owned());
                Outcome::Ran { sheet: Sheet::default(), notes: apart.into_iter().collect(), demands }
            }
        }
    }

    /// What a run needs in the other file systems, and last on Andrew, as far as the servers tell their time; nothing
    /// without another file system or a compiler.
    fn compared_here(&self, setting: &Setting<'_>) -> Result<Vec<(String, Demands)>, String> {
        if setting.others.is_empty() || !setting.environment.peers.contains_key("cc") {
            return Ok(Vec::new());
        }
        let measured = self.benchmarked(setting).as_ref().map_err(String::clone)?;
        let mut all = measure::other_demands(measured);
        if !all.is_empty() {
            all.extend(measure::demands(measured).map(|andrew| (ANDREW.to_owned(), andrew)));
        }
        Ok(all)
    }

    pub(super) fn benchmark(&self, setting: &Setting<'_>, what: Benchmarks) -> Outcome {
        let runs = runs(setting);
        let measured = match self.benchmarked(setting) {
            Ok(measured) => measured,
            Err(error) => return Outcome::Failed { error: error.clone() },
        };
        let sheet = match what {
            Benchmarks::Phases => Some(measure::phases(measured)),
            Benchmarks::Revised => measure::revised(measured),
            Benchmarks::Packets => measure::packets(measured),
            Benchmarks::Others => measure::compared(measured),
            Benchmarks::Calls => measure::calls(measured),
            Benchmarks::ServerWork => measure::server_work(measured),
        };
        let modelled = measure::demands(measured).filter(|_| what == Benchmarks::Revised);
        let (is_calls, is_packets) = (what == Benchmarks::Calls, what == Benchmarks::Packets);
        let what = format!(
            "A generated C program of 70 files; {runs} runs at load 1. The source is on the local disk."
        );
        let mut notes = vec![what.as_str(), machines(setting)];
        notes.extend(is_calls.then_some(ONE_RUN));
        notes.extend((is_packets && !measured.others.is_empty()).then_some(NAMESPACE));
        let mut outcome = ran(sheet, "counters of the client, and a server on this machine", &notes);
        if let Outcome::Ran { demands, .. } = &mut outcome {
            demands.extend(modelled.map(|one| (ANDREW.to_owned(), one)));
        }
        outcome
    }

    pub(super) fn fetch(&self, setting: &Setting<'_>, what: FetchTests) -> Outcome {
        let Some(mount) = &setting.mount else {
            return refused("a directory in a mount of Andrew (--mount)");
        };
        let measure =
            || measure::fetches(mount.place, setting.quick, setting.stop).map_err(|error| error.to_string());
        let fetches = match self.fetches.get_or_init(measure) {
            Ok(fetches) => fetches,
            Err(error) => return Outcome::Failed { error: error.clone() },
        };
        let (sheet, lacks) = match what {
            FetchTests::Bypass => {
                (measure::bypassed(fetches), "a mount without the data path (`andrew mount --data-path off`)")
            }
            FetchTests::Combined => (
                measure::combined(fetches),
                "a mount that fetches by the data path (`andrew mount --data-path on`)",
            ),
            FetchTests::Largest => (measure::hundred(fetches), "a fetch"),
            FetchTests::Throughput => (Some(measure::throughput(fetches)), "a fetch"),
        };
        let way = |by_path| if by_path { "by the data path" } else { "by calls" };
        let (past, through) = (way(fetches.uses_data_path()), way(fetches.fills_cache_by_data_path()));
        let came = format!(
            "What is read past the cache comes {past}, what is read through it {through}. MB are 10⁶ bytes."
        );
        ran(sheet, lacks, &[&came, machines(setting)])
    }
}

/// Open, read and close of small files.
pub(super) fn latency(setting: &Setting<'_>) -> Outcome {
    let (runs, cold_runs) = if setting.quick { (50, 5) } else { (1000, 100) };
    let cache = Box::new(KernelCache { is_other_client: false });
    let local = Place { directory: setting.local.to_owned(), cache, processes: Vec::new() };
    let of_local = || Latencies::of(&local, runs, cold_runs);
    let measured = || -> Result<Sheet, LabError> {
        let mount = setting.mount.as_ref();
        let of = |mount: &Mounted<'_>| Latencies::of(mount.place, runs, cold_runs);
        let mounted = mount.map(of).transpose()?;
        let others = setting.others.iter().map(|other| Ok((other.name, of(&other.mounted)?)));
        let others = others.collect::<Result<Vec<_>, LabError>>()?;
        Ok(measure::latency(&of_local()?, mounted.as_ref(), &others))
    };
    let warm = format!(
        "{runs} times each, {cold_runs} of files that the client has flushed. Standalone files are in the kernel's cache."
    );
    match measured() {
        Ok(sheet) => ran(Some(sheet), "", &[&warm, machines(setting)]),
        Err(error) => Outcome::Failed { error: error.to_string() },
    }
}

pub(super) fn ran(sheet: Option<Sheet>, lacks: &str, notes: &[&str]) -> Outcome {
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    sheet.map_or_else(|| refused(lacks), |sheet| Outcome::Ran { sheet, notes, demands: Vec::new() })
}

pub(super) fn refused(lacks: &str) -> Outcome {
    Outcome::Refused { lacks: lacks.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;
    use crate::andrew::{Counters, Probe};
    use crate::bulk::{Cache, Cold, Moved, Way};
    use crate::measure::OtherMount;
    use crate::runs::Environment;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    /// A cache that says that a gigabyte was fetched whenever it is asked, by the data path or not.
    struct Scripted(AtomicU64, bool);

    impl Cache for Scripted {
        fn ways(&self) -> &[Way] {
            &[Way::Cached, Way::Bypassed]
        }

        fn make_cold(&self, _: &Path, _: Way) -> Result<Cold, LabError> {
            Ok(Cold::Flushed)
        }

        fn moved(&self) -> Option<Moved> {
            let fetched_bytes = self.0.fetch_add(1 << 30, Ordering::Relaxed);
            let fetched_by_data_path_bytes = if self.1 { fetched_bytes } else { 0 };
            Some(Moved { fetched_bytes, fetched_by_data_path_bytes, ..Moved::default() })
        }
    }

    /// Outcomes in a directory that is no mount, or one with a scripted cache.
    fn outcomes<T>(data_path: Option<bool>, of: impl FnOnce(&Setting<'_>, &Memo) -> T) -> T {
        let directory = tempfile::tempdir().unwrap();
        let place = data_path.map(|by_path| {
            let cache = Box::new(Scripted(AtomicU64::new(0), by_path));
            Place { directory: directory.path().to_owned(), cache, processes: Vec::new() }
        });
        let never = AtomicBool::new(false);
        let setting = Setting {
            environment: Environment::default(),
            quick: true,
            date: &String::new,
            stop: &never,
            local: directory.path(),
            mount: place.as_ref().map(|place| Mounted { place, probe: None }),
            program: None,
            peer: None,
            servers_are_apart: false,
            others: Vec::new(),
        };
        let outcome = of(&setting, &Memo::default());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "something was left behind");
        outcome
    }

    fn columns(outcome: Outcome) -> Vec<String> {
        match outcome {
            Outcome::Ran { sheet, .. } => {
                assert!(sheet.rows.iter().all(|row| row.len() == sheet.columns.len()));
                assert_eq!(sheet.units.len(), sheet.columns.len());
                sheet.columns
            }
            other => vec![format!("{other:?}")],
        }
    }

    #[test]
    fn latency_has_cold_times_only_of_a_mount() {
        let with = columns(outcomes(Some(false), |setting, _| latency(setting)));
        assert!(with.contains(&"andrew_cold".into()) && with.contains(&"standalone_max".into()));
        let without = columns(outcomes(None, |setting, _| latency(setting)));
        assert_eq!(without, ["file_bytes", "standalone", "standalone_min", "standalone_max"]);
    }

    #[test]
    fn a_fetch_is_of_table_3_or_of_table_4_by_the_way_that_the_bytes_came() {
        for by_path in [false, true] {
            let (bypass, combined, rates) = outcomes(Some(by_path), |setting, memo| {
                let of = |what| columns(memo.fetch(setting, what));
                (of(FetchTests::Bypass), of(FetchTests::Combined), of(FetchTests::Throughput))
            });
            let (has, lacks) = if by_path { (combined, bypass) } else { (bypass, combined) };
            let name = if by_path { "elapsed_combined" } else { "elapsed_bypass" };
            assert!(has.contains(&name.into()) && has.contains(&"system_impr".into()), "{has:?}");
            assert!(lacks[0].starts_with("Refused") && lacks[0].contains("--data-path"), "{lacks:?}");
            assert_eq!(rates.len(), 7);
        }
        let without = columns(outcomes(None, |setting, memo| memo.fetch(setting, FetchTests::Bypass)));
        assert!(without[0].contains("--mount"), "{without:?}");
    }

    /// A server that works a millisecond between any two looks at it.
    struct Working(AtomicU64);

    impl Probe for Working {
        fn read(&self) -> Option<Counters> {
            let server_cpu_us = self.0.fetch_add(1000, Ordering::Relaxed);
            let calls = server_cpu_us / 100;
            let calls_by_operation = [("FetchStatus".to_owned(), calls)].into();
            Some(Counters { calls, calls_by_operation, server_cpu_us, ..Counters::default() })
        }
    }

    /// What a run was measured to need, with the time that it took.
    fn systems(outcome: Outcome) -> Vec<String> {
        let Outcome::Ran { demands, .. } = outcome else { unreachable!("{outcome:?}") };
        assert!(demands.iter().all(|(_, one)| one.elapsed > 0.0 && one.processor > 0.0), "{demands:?}");
        demands.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn a_run_in_a_mount_whose_server_tells_its_time_tells_what_it_needs() {
        let environment = Environment::of("");
        if !environment.peers.contains_key("cc") {
            eprintln!("SKIPPED: there is no C compiler");
            return;
        }
        let (directory, mounted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cache = Box::new(Scripted(AtomicU64::new(0), false));
        let place = Place { directory: mounted.path().to_owned(), cache, processes: Vec::new() };
        let (never, probe) = (AtomicBool::new(false), Working(AtomicU64::new(0)));
        let setting = Setting {
            environment,
            quick: true,
            date: &String::new,
            stop: &never,
            local: directory.path(),
            mount: Some(Mounted { place: &place, probe: Some(&probe) }),
            program: None,
            peer: None,
            servers_are_apart: false,
            others: ["nfs", "kafs"]
                .map(|name| OtherMount { name, mounted: Mounted { place: &place, probe: Some(&probe) } })
                .into(),
        };
        let memo = Memo::default();
        assert_eq!(systems(memo.loads(&setting, ManyClients::Server)), ["andrew"]);
        assert_eq!(systems(memo.loads(&setting, ManyClients::Relative)), ["andrew"]);
        let table9 = memo.benchmark(&setting, Benchmarks::Calls);
        let Outcome::Ran { sheet, notes, .. } = table9 else { unreachable!("{table9:?}") };
        assert_eq!(sheet.rows, [["FetchStatus".into(), 10.0.into(), 100.0.into()]]);
        assert!(notes.iter().any(|note| note == ONE_RUN), "{notes:?}");
        assert_eq!(systems(memo.compared(&setting)), ["nfs", "kafs", "andrew"]);
        let by_phase = columns(memo.benchmark(&setting, Benchmarks::Others));
        let medians = by_phase.iter().filter(|name| !name.ends_with("_min") && !name.ends_with("_max"));
        let medians: Vec<&str> = medians.map(String::as_str).collect();
        assert_eq!(medians, ["phase", "load_units", "nfs", "kafs", "andrew_warm", "local"]);
        let phases = columns(memo.benchmark(&setting, Benchmarks::Phases));
        assert!(phases.contains(&"local".into()) && phases.contains(&"kafs_max".into()));
        let opened = columns(latency(&setting));
        assert!(opened.contains(&"kafs".into()) && opened.last() == Some(&"standalone_max".into()));
        assert_eq!(systems(memo.benchmark(&setting, Benchmarks::Revised)), ["andrew"]);
    }

    #[test]
    fn the_benchmark_has_a_line_for_each_phase() {
        if !Environment::of("").peers.contains_key("cc") {
            eprintln!("SKIPPED: there is no C compiler");
            return;
        }
        let (phases, packets) = outcomes(None, |setting, memo| {
            (memo.benchmark(setting, Benchmarks::Phases), memo.benchmark(setting, Benchmarks::Packets))
        });
        let Outcome::Ran { sheet, .. } = phases else { unreachable!("{phases:?}") };
        assert_eq!(sheet.rows.len(), 6);
        assert!(sheet.number("Make", "local") > Some(0.0) && sheet.column("andrew").is_none());
        assert!(matches!(packets, Outcome::Refused { .. }));
    }
}
