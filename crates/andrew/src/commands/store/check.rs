//! `andrew store check`: reads everything of the stores in a directory.

use super::text::Reports;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::stores;
use std::path::PathBuf;

/// Options of `andrew store check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Writes nothing. Status 1 if a store is damaged. The bytes of larger files are on drives: `andrew drive check local` reads these while
the server runs.

Examples:
  andrew store check ~/.local/state/andrew")]
pub struct Args {
    /// A state directory, the directory of a partition, or a store in one of them
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Args {
    pub(super) fn run(self, json: bool) -> CommandResult {
        let found = stores::find(&self.directory).map_err(CommandError::usage)?;
        let checked: Result<Vec<_>, _> = found.iter().map(stores::OfflineStore::check).collect();
        let reports = Reports(checked.map_err(CommandError::failed)?);
        output::show(json, &reports);
        match reports.0.iter().filter(|report| !report.whole).count() {
            0 => Ok(()),
            damaged => Err(CommandError::failed(format!(
                "store: {damaged} of {} stores are damaged; put the files back, or use `andrew store repair {}`",
                reports.0.len(),
                self.directory.display()
            ))),
        }
    }
}
