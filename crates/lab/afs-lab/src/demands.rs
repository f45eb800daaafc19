//! What a run of the benchmark needs, from which the report's model follows to larger loads.

use serde::{Deserialize, Serialize};

/// Seconds that a run of one client needs when it is alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Demands {
    /// From its beginning to its end.
    pub elapsed: f64,
    /// Of the server's processor.
    pub processor: f64,
}
