//! Errors of reaching a running cell.

use std::io;
use std::path::PathBuf;

/// Why a running cell was not reached.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// None runs on this state directory.
    #[error("no cell is running on {}", .0.display())]
    NotRunning(PathBuf),
    /// Its socket does not take the connection.
    #[error("cannot reach the cell running on {}: {error}", .state.display())]
    Unreachable {
        /// The state directory.
        state: PathBuf,
        /// Why.
        error: io::Error,
    },
}
