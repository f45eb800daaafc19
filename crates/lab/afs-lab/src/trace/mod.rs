//! Generator of traces with the published distributions of Gibson et al. 1997 (Tables 2 to 7).
//!
//! The traces themselves are not at hand. Published are: clients, hours, requests and bytes of each trace, requests by
//! type, and the same of the busy client-minutes (a client-minute is one client in one minute; it is busy if its work on
//! the server takes more than 0.1 s), with their share of all. A generated trace has these. Not published, and assumed here:
//!
//! - requests of a client-minute: exponential around the mean of busy and of other minutes, busy ones from 0.1 s of work on;
//! - sizes: of NFS full blocks and others evenly distributed, of AFS exponential, with the published means;
//! - client-minutes, and requests within one, evenly distributed over the hours and over the minute;
//! - files: none. Requests do not name them, so opens cannot be generated; a replay spreads them over the requests.
//!
//! The same seed gives the same trace. A trace is made minute by minute; none is held in memory.

mod generate;
mod prices;
mod shape;
mod statistics;

pub use generate::{ClientMinute, Request, Trace};
pub use shape::{Class, Operation, Shape, Size};
pub use statistics::{Statistics, figure4, table2};
