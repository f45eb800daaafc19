//! Tables, figures and claims of the three papers whose experiments this crate repeats, embedded as TOML (`data/README.md`).
//!
//! Howard et al. 1988 (AFS), Antonelli et al. 2001 (CITI TR 01-3) and Gibson et al. 1997 (network-attached disks).

mod cell;
mod entry;
mod error;
mod parse;
mod sheet;

pub use cell::Cell;
pub use entry::{Claim, Entry, Follows, Kind, Paper, Slip, Source};
pub use error::PaperError;
pub use parse::{papers, parse};
pub use sheet::Sheet;
