//! Many clients at once as processes, with waiting in the place of compiling, so that many fit on one machine: each runs the Andrew
//! benchmark in a mount of Andrew, or its script on the prototype of 1984. The server has a part of a processor, by a
//! control group, such that one client of Andrew uses as much of it as in Howard et al. 1988 (Table VII).

mod cap;
mod loads;
mod mounted;
mod prototype;
mod prototype_tables;
mod table;

pub use loads::{AtLoad, Ran};
pub use mounted::Clients;
pub use prototype::{PrototypeClients, PrototypeRan, Usage};
pub use prototype_tables::{relative_times, table3, table4};
pub use table::by_load;
