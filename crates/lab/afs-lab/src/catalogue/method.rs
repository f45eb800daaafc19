//! How an experiment is repeated.

use crate::closed::Told;

/// A table or figure as an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Id of the entry.
    pub id: &'static str,
    /// What was measured.
    pub measures: &'static str,
    /// How it is repeated here.
    pub method: Method,
}

/// A way to repeat an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Computed from the paper's own inputs.
    Recompute(Recomputed),
    /// Generated with the published distributions.
    Generate(Generated),
    /// Generated client-minutes, replayed at a queue.
    Replay,
    /// The Andrew benchmark.
    Benchmark(Benchmarks),
    /// The prototype of 1984, made anew.
    Prototype(PrototypeTable),
    /// Many clients at once, modelled from load 1.
    Loads(Loads),
    /// NFS and other file systems beside Andrew: modelled from load 1, as in the paper and as measured here.
    Compared(Told),
    /// Open, read and close of small files.
    Latency,
    /// Fetches of large files.
    Fetch(FetchTests),
    /// Layers of the network between two processes.
    Layers(LayerTable),
    /// Operations on volumes in a cell that the lab starts.
    Volumes,
    /// Costs of calls that were measured on a server.
    Costs(CostTable),
    /// Nothing was measured: a list, a diagram or a description.
    Description,
    /// It cannot be had from a run of programs, for want of this.
    Lacks(&'static str),
}

/// What is computed by the model of `crate::model`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recomputed {
    /// Shares of cycles of the whole NFS trace.
    NfsShares,
    /// Shares of cycles of the whole AFS trace.
    AfsShares,
    /// Shares of the busy client-minutes.
    BusyShares,
    /// Costs that the rules give NFS operations.
    NfsRules,
    /// Costs that the rules give AFS operations.
    AfsRules,
    /// Work by operation, NFS.
    NfsWork,
    /// Work by operation, AFS.
    AfsWork,
    /// Work of many client-minutes.
    Curves,
    /// Costs that the work implies.
    Costs,
    /// Work under other rules for opens.
    Opens,
}

/// What is told of the Andrew benchmark.
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

/// What is told of many clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loads {
    /// Use of the server.
    Server,
    /// Times by load, relative to load 1.
    Relative,
}

/// What is told of the fetches of large files.
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

/// A table of costs of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostTable {
    /// NFS requests by size.
    NfsSized,
    /// NFS requests that have no size.
    NfsFixed,
    /// NFS create and remove.
    NfsNames,
    /// AFS calls by size.
    AfsSized,
    /// BulkStatus by entries.
    AfsEntries,
    /// AFS calls that have no size.
    AfsFixed,
}

/// What is told of generated traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generated {
    /// Requests, bytes and shares.
    Totals,
    /// Distribution of work over client-minutes.
    WorkDistribution,
}

impl Method {
    /// Whether it can be run, with what it needs.
    #[must_use]
    pub fn runs(self) -> bool {
        !matches!(self, Self::Description | Self::Lacks(_))
    }

    /// Whether it needs a directory in a mount of Andrew.
    #[must_use]
    pub fn needs_mount(self) -> bool {
        match self {
            Self::Benchmark(what) => !matches!(what, Benchmarks::Phases | Benchmarks::Others),
            Self::Fetch(_) => true,
            _ => false,
        }
    }

    /// Whether it needs a directory in another file system.
    #[must_use]
    pub fn needs_other(self) -> bool {
        self == Self::Benchmark(Benchmarks::Others)
    }

    /// Whether its result has columns of other file systems, if there are any.
    #[must_use]
    pub fn uses_others(self) -> bool {
        match self {
            Self::Benchmark(what) => {
                matches!(what, Benchmarks::Phases | Benchmarks::Packets | Benchmarks::Others)
            }
            Self::Compared(_) | Self::Latency => true,
            _ => false,
        }
    }

    /// Whether it needs a file of costs.
    #[must_use]
    pub fn needs_costs(self) -> bool {
        matches!(self, Self::Costs(_))
    }

    /// Whether its result has the costs of a server, if there are any.
    #[must_use]
    pub fn uses_costs(self) -> bool {
        let has_work = matches!(self, Self::Recompute(Recomputed::NfsWork | Recomputed::AfsWork));
        self == Self::Replay || self.needs_costs() || has_work
    }

    /// Whether it starts servers, for which it needs the program.
    #[must_use]
    pub fn needs_program(self) -> bool {
        matches!(self, Self::Volumes | Self::Prototype(PrototypeTable::Times | PrototypeTable::Usage))
    }

    /// Whether it needs a C compiler.
    #[must_use]
    pub fn needs_compiler(self) -> bool {
        matches!(self, Self::Benchmark(_))
    }

    /// Seconds that a run takes, roughly: the weight of the experiment in the time left.
    #[must_use]
    pub fn weight_seconds(self, quick: bool) -> u64 {
        match self {
            Self::Benchmark(Benchmarks::Phases) | Self::Fetch(FetchTests::Bypass) if quick => 10,
            Self::Benchmark(Benchmarks::Phases) | Self::Fetch(FetchTests::Bypass) => 60,
            Self::Generate(_) if !quick => 10,
            Self::Volumes => {
                if quick {
                    5
                } else {
                    60
                }
            }
            // The others have the streams of the first.
            Self::Layers(LayerTable::Stack) => {
                if quick {
                    5
                } else {
                    60
                }
            }
            Self::Replay => 3,
            // Their processes wait for most of the time.
            Self::Loads(Loads::Server) | Self::Prototype(PrototypeTable::Times) => {
                if quick {
                    8
                } else {
                    100
                }
            }
            _ => 1,
        }
    }
}

/// Shorthand of the lists.
pub(super) const fn at(id: &'static str, measures: &'static str, method: Method) -> Experiment {
    Experiment { id, measures, method }
}
