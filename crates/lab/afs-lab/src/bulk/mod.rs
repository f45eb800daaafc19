//! Store and fetch of large files on any directory, as in Antonelli, Coffman and Rees, "Improving AFS Performance via
//! Selective Caching and Native ATM AAL5" (CITI TR 01-3, 2001), sections 7.2 and 7.3.
//!
//! A file is written and closed, then read where nothing of it is cached (cold) and read again (warm). Measured are the
//! elapsed time, the processor time of the thread that reads or writes, and that of other processes: the client and the
//! server. What is read is compared with what was written, within the measured time.

mod cache;
mod many;
mod others;
mod pattern;
mod place;
mod process_clock;
mod report;
mod run;
mod samples;
mod transfer;
mod usage;

pub use cache::{Cache, Cold, KernelCache, Moved, Way};
pub use many::{AT_ONCE_MAX, FILES_MAX, Many, ManyTaken};
pub use others::{SmallOperation, StatOf};
pub use place::{Place, Process};
pub use report::{Measured, Operation, OthersTimes, ProcessTime, Report, SizeReport};
pub use run::{Bulk, Progress, RUNS_MAX};
pub(crate) use usage::process_times;
