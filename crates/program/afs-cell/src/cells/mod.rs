//! Cells that a mount knows beside its own: from files in OpenAFS's format, from options, and from DNS.

mod cell_serv_db;
pub(crate) mod dns;
mod error;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod known;
mod other;

pub use cell_serv_db::{BadLine, CellServDb, ListedCell};
pub use dns::{Dns, DnsServers};
pub use error::CellsError;
pub use known::{CellFile, OtherCells};
pub use other::OtherCell;
