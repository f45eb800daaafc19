//! Analytic model of Gibson et al. 1997: work of the file manager = sum over operations of count times cost.
//!
//! Counts, costs and rules are those of the paper's Tables 2 to 7 (`data/gibson97.toml`). What Table 6 charges an operation
//! with decides its cost in each of three systems: disks behind the server (SAD), disks on the network that obey the server
//! (NetSCSI), and disks that serve clients by capability (NASD).

mod costs;
mod inputs;
mod shares;
mod variants;
mod work;

pub(crate) use costs::cost;
pub use costs::line;
pub use inputs::Inputs;
pub use shares::{table3a, table4a, table5};
pub use variants::{derived_costs, derived_opens, figure6};
pub(crate) use work::charged;
pub use work::{Agreement, OperationWork, SYSTEMS, TraceKind, table6, table7, work};
