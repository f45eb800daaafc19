//! Many clients at once as processes: each runs the Andrew benchmark in the mount, with waiting in the place of compiling, so that many
//! fit on one machine; the server has a part of a processor, by a control group, such that one client uses as much of it as in
//! Howard et al. 1988 (Table VII).

mod cap;
mod loads;
mod table;

pub use loads::{Clients, Ran};
pub use table::add_ran;
