//! Catalogue of what is measured here: tables and figures of three papers, each with how it is repeated.
//!
//! What each measured in its paper, and those that are computed or cannot be had, stand with the papers' data (`data/README.md`).

use Method::{Benchmark, Compared, Fetch, Latency, Layers, Loads, Prototype, Volumes};

/// A table or figure as an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Id of the entry.
    pub id: &'static str,
    /// How it is repeated here.
    pub method: Method,
}

/// A way to repeat an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The Andrew benchmark.
    Benchmark(Benchmarks),
    /// The prototype of 1984, made anew.
    Prototype(PrototypeTable),
    /// Many clients at once.
    Loads(ManyClients),
    /// NFS and other file systems beside Andrew: what a run needs alone.
    Compared,
    /// Open, read and close of small files.
    Latency,
    /// Fetches of large files.
    Fetch(FetchTests),
    /// Layers of the network between two processes.
    Layers(LayerTable),
    /// Operations on volumes in a cell that the lab starts.
    Volumes,
}

/// Results of the Andrew benchmark that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Benchmarks {
    /// Times on a local disk, and in a mount if there is one.
    Phases,
    /// Times in a mount.
    Revised,
    /// Packets of a run in a mount.
    Packets,
    /// Times in other file systems, beside those in a mount of Andrew.
    Others,
    /// Calls of a run in a mount, by operation.
    Calls,
    /// Processor time of the server.
    ServerWork,
}

/// Tables of the prototype of 1984 that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrototypeTable {
    /// Calls by type.
    Calls,
    /// Times by load.
    Times,
    /// Use of the server by load.
    Usage,
}

/// Results of many clients that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManyClients {
    /// Use of the server.
    Server,
    /// Times by load, relative to load 1.
    Relative,
}

/// Results of fetches of large files that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchTests {
    /// Through the cache against past it, by calls.
    Bypass,
    /// Through the cache against past it, by the data path.
    Combined,
    /// Times of the largest file.
    Largest,
    /// Throughput by size.
    Throughput,
}

/// The tables about layers of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerTable {
    /// Throughput of each.
    Stack,
    /// Of Rx, and of what takes its place.
    Exchanged,
    /// Times of a reader of chunks.
    Chunks,
}

impl Method {
    /// Whether it needs a directory in a mount of Andrew.
    #[must_use]
    pub fn needs_mount(self) -> bool {
        match self {
            Benchmark(what) => !matches!(what, Benchmarks::Phases | Benchmarks::Others),
            Fetch(_) => true,
            _ => false,
        }
    }

    /// Whether it needs a directory in another file system.
    #[must_use]
    pub fn needs_other(self) -> bool {
        matches!(self, Benchmark(Benchmarks::Others) | Compared)
    }

    /// Whether its result has columns of other file systems, if there are any.
    #[must_use]
    pub fn uses_others(self) -> bool {
        let has_columns = matches!(self, Benchmark(Benchmarks::Phases | Benchmarks::Packets) | Latency);
        has_columns || self.needs_other()
    }

    /// Whether it needs a C compiler.
    #[must_use]
    pub fn needs_compiler(self) -> bool {
        matches!(self, Benchmark(_))
    }

    /// Seconds that a run takes, roughly: the weight of the experiment in the time left.
    #[must_use]
    pub fn weight_seconds(self, is_quick: bool) -> u64 {
        let (quick, whole) = match self {
            Benchmark(Benchmarks::Phases) | Fetch(FetchTests::Bypass) => (10, 60),
            // The other layers have the streams of the first.
            Volumes | Layers(LayerTable::Stack) => (5, 60),
            // Their processes wait for most of the time.
            Loads(ManyClients::Server) | Prototype(PrototypeTable::Times) => (8, 100),
            _ => (1, 1),
        };
        if is_quick { quick } else { whole }
    }
}

const fn at(id: &'static str, method: Method) -> Experiment {
    Experiment { id, method }
}

const EXPERIMENTS: &[Experiment] = &[
    at("howard88.table1", Benchmark(Benchmarks::Phases)),
    at("howard88.table2", Prototype(PrototypeTable::Calls)),
    at("howard88.table3", Prototype(PrototypeTable::Times)),
    at("howard88.table4", Prototype(PrototypeTable::Usage)),
    at("howard88.table6", Benchmark(Benchmarks::Revised)),
    at("howard88.table7", Loads(ManyClients::Server)),
    at("howard88.table9", Benchmark(Benchmarks::Calls)),
    at("howard88.table11", Benchmark(Benchmarks::Others)),
    at("howard88.table12", Compared),
    at("howard88.table13", Benchmark(Benchmarks::Packets)),
    at("howard88.table14", Latency),
    at("howard88.section6", Volumes),
    at("howard88.fig1", Loads(ManyClients::Relative)),
    at("howard88.fig2", Loads(ManyClients::Server)),
    at("howard88.fig3", Compared),
    at("howard88.fig4", Compared),
    at("howard88.fig5", Compared),
    at("howard88.derived-server-work", Benchmark(Benchmarks::ServerWork)),
    at("citi01-3.table1", Layers(LayerTable::Stack)),
    at("citi01-3.table2", Layers(LayerTable::Exchanged)),
    at("citi01-3.table3", Fetch(FetchTests::Bypass)),
    at("citi01-3.table4", Fetch(FetchTests::Combined)),
    at("citi01-3.fig2", Layers(LayerTable::Chunks)),
    at("citi01-3.fig4", Fetch(FetchTests::Largest)),
    at("citi01-3.fig5", Fetch(FetchTests::Throughput)),
];

/// All experiments, in the order of the papers.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    EXPERIMENTS.iter()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // A test that cannot go on says where.
mod tests {
    use super::*;

    const PAPERS: [&str; 2] = [include_str!("../data/howard88.toml"), include_str!("../data/citi01-3.toml")];

    /// By the papers' data: of the third paper everything is computed.
    #[test]
    fn every_entry_that_is_measured_has_its_experiment_and_no_other() {
        let is_measured =
            |entry: &&toml::Value| ["measured", "modelled"].contains(&entry["how"].as_str().unwrap());
        let mut listed = Vec::new();
        for paper in PAPERS {
            let paper: toml::Table = paper.parse().unwrap();
            for kind in ["table", "figure"] {
                let entries = paper[kind].as_array().unwrap().iter().filter(is_measured);
                listed.extend(entries.map(|entry| entry["id"].as_str().unwrap().to_owned()));
            }
        }
        let mut here: Vec<&str> = experiments().map(|one| one.id).collect();
        listed.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, listed);
    }
}
