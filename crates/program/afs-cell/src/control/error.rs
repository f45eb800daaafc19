//! Errors of connecting to a running cell.

use std::io;
use std::path::PathBuf;

/// Why a running cell could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No cell runs on this state directory.
    #[error("no cell is running on {}", .0.display())]
    NotRunning(PathBuf),
    /// Its socket does not accept the connection.
    #[error("cannot reach the cell running on {}: {error}", .state.display())]
    Unreachable {
        /// The state directory.
        state: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}
