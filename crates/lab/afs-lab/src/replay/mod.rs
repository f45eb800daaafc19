//! Replay of busy client-minutes at the file manager (Gibson et al. 1997, section 6: Figures 6 and 7).
//!
//! As in the paper, `m` busy client-minutes are drawn, five times for each `m`, merged by time stamp, translated by the
//! rules of Table 6 for each system, and served: mean and 90 % interval over the draws. Two things are unlike the paper:
//!
//! - client-minutes are generated ([`crate::trace`]), and their opens are spread evenly over their requests, because
//!   generated requests name no files; the mean number of opens is that of Table 7;
//! - the file manager is a queue in order of arrival at one processor, with the paper's costs at the clock of its replay,
//!   or with costs measured here ([`MeasuredCosts`]). It has neither disks nor a limit of threads: the paper tells no times
//!   of disks, and its AFS server overran for lack of threads. So it overruns later than the paper's.
//!
//! Two systems have numbers only with measured costs. Server-integrated disks (SID), which the paper takes for disks behind a server (SAD) at
//! a lower price, are a server whose bytes leave by its own data path. NASD with groups has as many calls for capabilities
//! as a client was counted to make ([`WarmClient`]), where the paper counts one for each file and day.

mod charges;
mod draw;
mod figures;
mod interval;
mod measured;
mod queue;
mod systems;
mod tables;
mod warm_client;

pub use charges::ReplayError;
pub use figures::{figure6, figure7};
pub use measured::{CostsError, MeasuredCosts};
pub use tables::{add_work, costs_table};
pub use warm_client::WarmClient;
