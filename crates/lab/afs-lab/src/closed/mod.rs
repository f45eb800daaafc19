//! Many clients of one server: a closed queueing network, for the loads of Howard et al. 1988 (section 4.1) and beyond.
//!
//! Each client runs the benchmark again and again: it works by itself for a time, and asks the server for the rest. The
//! server has a processor and a disk, each with a queue. What a run needs of them is measured at load 1, in the paper or here;
//! all other loads follow. So the model knows neither a server that needs more for each run when it is busy, nor a network,
//! nor clients that begin together and wait for the last. Nothing is simulated but the waiting.

mod compared;
mod network;
mod tables;

pub use compared::{Compared, Told, compared, crossing, printed_crossings};
pub use network::{AtLoad, Demands};
pub use tables::{LOADS, figure1, more_loads, table7};
