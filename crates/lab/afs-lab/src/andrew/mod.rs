//! The Andrew benchmark (Howard et al. 1988, section 2.3).
//!
//! The input is a read-only source tree. Each copy of the benchmark goes through five phases on a
//! subtree of its own in the target directory:
//!
//! | phase | what it does |
//! |---|---|
//! | MakeDir | makes directories as the source has them |
//! | Copy | copies every file |
//! | ScanDir | walks the subtree and asks for the status of every file, reading none |
//! | ReadAll | reads every byte of every file once |
//! | Make | compiles and links |
//!
//! A *load* of N runs N copies at once, each starting when all are ready; in the paper a load unit
//! is a workstation of its own, here it is a thread of this process. Each load is repeated, and the
//! report gives the median and the range.

mod counters;
mod make;
mod phases;
mod report;
mod run;
mod tree;

pub use counters::{Counters, Probe};
pub use make::MakeCommand;
pub use report::{LoadReport, Phase, PhaseTimes, Report, RunReport};
pub use run::{Benchmark, LOADS_MAX, Progress, RUNS_MAX};
pub use tree::{SourceTree, TreeSize};
