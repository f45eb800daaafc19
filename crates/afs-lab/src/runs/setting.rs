//! What a run has at its disposal.

use super::environment::Environment;
use crate::papers::Paper;
use std::sync::atomic::AtomicBool;

/// Directories, data and switches of a run.
pub struct Setting<'a> {
    /// The papers.
    pub papers: &'a [Paper],
    /// Machine and programs.
    pub environment: Environment,
    /// Few and short repetitions.
    pub quick: bool,
    /// The present time in RFC 3339.
    pub date: &'a dyn Fn() -> String,
    /// Ends the run when it is true.
    pub stop: &'a AtomicBool,
}
