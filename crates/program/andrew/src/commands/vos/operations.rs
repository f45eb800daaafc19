//! `andrew vos operations` and `andrew vos resume`: operations in progress and interrupted ones.

use super::dates;
use super::ops::{Ops, told};
use crate::error::{CommandError, CommandResult};
use crate::output;
use crate::units;
use afs_admin::journal::Record;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos operations`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos operations\n  andrew vos operations --json")]
pub struct Args {}

/// Options of `andrew vos resume`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Operations that had reached their switch are completed; all others are undone. Andrew's servers do this by
themselves after some seconds.

Examples:
  andrew vos resume
  andrew vos resume projects")]
pub struct ResumeArgs {
    /// Only operations on this volume
    #[arg(value_name = "NAME")]
    volume: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Shown {
    id: u64,
    operation: String,
    #[serde(rename = "volume_id")]
    volume: u32,
    name: String,
    step: String,
    holder: String,
    #[serde(serialize_with = "units::time")]
    since: u32,
    interrupted: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Shown>);

#[derive(Serialize)]
struct Resumed {
    operation: Shown,
    outcome: Option<afs_admin::Outcome>,
    error: Option<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct AllResumed(Vec<Resumed>);

impl From<&Record> for Shown {
    fn from(record: &Record) -> Self {
        let draft = &record.draft;
        Self {
            id: record.id.0,
            operation: draft.word.clone(),
            volume: draft.volume.0,
            name: draft.name.clone(),
            step: draft.step.clone(),
            holder: draft.holder.to_string(),
            since: record.since.0,
            interrupted: record.lapsed,
        }
    }
}

impl Args {
    /// Prints the operations in progress.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let open = ops.run(|admin| async move { admin.operations().await })?;
        output::show(json, &List(open.iter().map(Shown::from).collect()));
        Ok(())
    }
}

impl ResumeArgs {
    /// Completes or undoes the interrupted operations.
    ///
    /// # Errors
    /// The journal cannot be read, or an operation can be neither completed nor undone now.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let volume = self.volume;
        let done = ops.run(|admin| async move { admin.resume_lapsed(volume.as_deref()).await })?;
        let failed = done.iter().filter(|r| r.outcome.is_err()).count();
        let one = |r: afs_admin::Resumed| Resumed {
            operation: Shown::from(&r.record),
            outcome: r.outcome.as_ref().ok().copied(),
            error: r.outcome.as_ref().err().map(|e| told(e).message),
        };
        output::show(json, &AllResumed(done.into_iter().map(one).collect()));
        if failed == 0 {
            return Ok(());
        }
        Err(CommandError::failed(format!(
            "vos: {failed} operations wait for a server; try again when it replies"
        )))
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, volume, name, step, holder, since, interrupted, .. } = self;
        let since = dates::show(afs_wire::ids::UnixSeconds(*since));
        write!(f, "{operation} of {name} ({volume}) at step {step}, by {holder} since {since}")?;
        if *interrupted { write!(f, ": interrupted") } else { Ok(()) }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "No operations in progress");
        }
        self.0.iter().try_for_each(|one| writeln!(f, "{one}"))
    }
}

impl fmt::Display for AllResumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "No interrupted operations");
        }
        for Resumed { operation, outcome, error } in &self.0 {
            let came = match (outcome, error) {
                (Some(afs_admin::Outcome::Completed), _) => "completed",
                (Some(afs_admin::Outcome::Undone), _) => "undone",
                (None, Some(error)) => error,
                (None, None) => "unknown",
            };
            writeln!(f, "{} of {} (step {}): {came}", operation.operation, operation.name, operation.step)?;
        }
        Ok(())
    }
}
