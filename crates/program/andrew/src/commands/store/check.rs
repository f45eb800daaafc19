//! `andrew store check`: reads everything of the stores in a directory.

use super::drives::DriveReports;
use super::text::Reports;
use crate::commands::serve::new_system;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_cell::drives::OfflineDrive;
use afs_cell::stores;
use std::path::PathBuf;

/// Options of `andrew store check`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Writes nothing. Status 1 if a store is damaged. The bytes of larger files are on drives. Of the directory of a drive that is not served
every chunk is read; what is missing altogether is known to its file server alone: there `andrew drive check NAME` (local for
the disks of the partitions) reads what its files need, while server and drive run.

Examples:
  andrew store check ~/.local/state/andrew
  andrew store check /srv/drive")]
pub struct Args {
    /// A state directory, the directory of a partition, a store in one of them, or the directory of a drive
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Args {
    pub(super) fn run(self, json: bool) -> CommandResult {
        let found = match (stores::find(&self.directory), OfflineDrive::find(&self.directory)) {
            (Err(_), Some(drive)) => return check_drive(&drive, json),
            (found, _) => found.map_err(CommandError::usage)?,
        };
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

fn check_drive(drive: &OfflineDrive, json: bool) -> CommandResult {
    let system = new_system()?;
    let report = system.block_on(drive.check(&system.env())).map_err(CommandError::failed)?;
    let (damaged, path) = (report.damage.len() as u64 + report.unlisted, report.path.clone());
    output::show(json, &DriveReports([report]));
    match damaged {
        0 => Ok(()),
        _ => Err(CommandError::failed(format!(
            "store: {damaged} parts of the drive {} are damaged; serve it again and let `andrew drive check` at its file server say which \
             files have them: copies and replicas give these again, otherwise a backup does",
            path.display()
        ))),
    }
}
