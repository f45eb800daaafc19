//! Text of the report on a drive that is not served.

use afs_cell::drives::OfflineDriveReport;
use serde::Serialize;
use std::fmt;

/// Reports on drives; one now.
#[derive(Serialize)]
#[serde(transparent)]
pub(super) struct DriveReports(pub(super) [OfflineDriveReport; 1]);

impl fmt::Display for DriveReports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [report] = &self.0;
        let path = report.path.display();
        let read = format!(
            "{} chunks with {} MiB in {} segments",
            report.chunks,
            report.bytes >> 20,
            report.segments
        );
        if report.whole {
            return writeln!(f, "{path}: {read}, all whole");
        }
        writeln!(f, "{path}: damaged; {read} are whole")?;
        report.damage.iter().try_for_each(|damage| match damage.range {
            Some((from, end)) => writeln!(f, "  {}, bytes {from} to {end}: {}", damage.file, damage.what),
            None => writeln!(f, "  {}: {}", damage.file, damage.what),
        })?;
        match report.unlisted {
            0 => Ok(()),
            more => writeln!(f, "  and {more} more damaged parts"),
        }
    }
}
