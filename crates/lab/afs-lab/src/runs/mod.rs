//! Runs of experiments: one JSON file for each, so that a run that was interrupted continues where it ended.

mod environment;
mod execute;
mod folder;
mod measured;
mod outcome;
mod own;
mod prototype;
mod setting;

pub use environment::{Environment, load_average};
pub use execute::{Step, run};
pub use folder::{FolderError, ResultFolder};
pub use outcome::{FORMAT, Outcome, RunResult};
pub use setting::Setting;
