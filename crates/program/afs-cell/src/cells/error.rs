//! Errors of files of cells, and of the look-up of the home cell.

use super::BadLine;
use afs_wire::ids::CellName;
use std::io;
use std::path::PathBuf;

/// Why the cells of a mount cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum CellsError {
    /// The file of cells cannot be read.
    #[error("cannot read the file of cells {}: {error}; give another one with --cellservdb, or \"off\"", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// A line of it cannot be used.
    #[error("the file of cells {}, {bad}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line.
        bad: BadLine,
    },
    /// The configuration of DNS cannot be read.
    #[error("cannot read the servers of DNS from {}: {error}; name one with --dns IP, or give --dns off", .path.display())]
    Resolver {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Nothing names the location servers of a cell.
    #[error("no location server of the cell {cell} is known{}; name them with --servers IP", .tried.as_deref().map_or(String::new(), |why| format!(" ({why})")))]
    NoServers {
        /// The cell.
        cell: CellName,
        /// What was asked in vain.
        tried: Option<String>,
    },
    /// DNS names another port.
    #[error("the location servers of the cell {cell} are at port {port}; give --base-port {}", port.saturating_sub(3))]
    OtherPort {
        /// The cell.
        cell: CellName,
        /// The port of the location servers.
        port: u16,
    },
}
