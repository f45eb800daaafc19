//! Result of one experiment, as it is written to its file.

use super::environment::Environment;
use crate::demands::Demands;
use crate::sheet::Sheet;
use serde::{Deserialize, Serialize};

/// Number of this form of results; files of another one are measured again.
pub const FORMAT: u32 = 1;

/// An experiment's result with what it was obtained on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// [`FORMAT`].
    pub format: u32,
    /// Id of the table or figure.
    pub id: String,
    /// When it began, in RFC 3339.
    pub began: String,
    /// Seconds that it took.
    pub seconds: f64,
    /// Whether it was shortened.
    pub quick: bool,
    /// Machine and programs.
    pub environment: Environment,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What came of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was run.
    Ran {
        /// The numbers, with the paper's columns where both have them.
        sheet: Sheet,
        /// What a reader has to know of them.
        notes: Vec<String>,
        /// What a run needs at load 1 in systems, by their names, in order: the report's model has other loads from it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        demands: Vec<(String, Demands)>,
    },
    /// It cannot run here.
    Refused {
        /// What it lacks.
        lacks: String,
    },
    /// It ended with an error.
    Failed {
        /// The error.
        error: String,
    },
}

impl RunResult {
    /// Whether it need not be run again: numbers of the same form, program and length.
    #[must_use]
    pub fn is_final(&self, version: &str, quick: bool) -> bool {
        matches!(self.outcome, Outcome::Ran { .. })
            && (self.format, self.quick, &*self.environment.version) == (FORMAT, quick, version)
    }
}
