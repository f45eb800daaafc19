//! `andrew fs listquota` and `andrew fs quota`: quota and use of volumes.

use super::paths::Paths;
use super::volume_status::VolumeStatus;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs listquota`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Sizes are in units of 1024 bytes.\n\nExamples:\n  andrew fs listquota ~/afs")]
pub struct ListArgs {
    #[command(flatten)]
    paths: Paths,
}

/// Options of `andrew fs quota`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs quota ~/afs")]
pub struct QuotaArgs {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<VolumeStatus>);

#[derive(Serialize)]
#[serde(transparent)]
struct Percent(Vec<VolumeStatus>);

fn statuses(paths: Paths) -> CommandResult<Vec<VolumeStatus>> {
    paths.all().iter().map(|path: &PathBuf| VolumeStatus::of(path)).collect()
}

impl ListArgs {
    /// Prints the table.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        output::show(json, &List(statuses(self.paths)?));
        Ok(())
    }
}

impl QuotaArgs {
    /// Prints one line for each path.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        output::show(json, &Percent(statuses(self.paths)?));
        Ok(())
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<25}{:>15}{:>11}{:>8}{:>12}", "Volume Name", "Quota", "Used", "%Used", "Partition")?;
        for status in &self.0 {
            let quota = if status.quota_kib == 0 { "no limit".into() } else { status.quota_kib.to_string() };
            let (used, warn) = mark(status.percent_used(), 90);
            let (partition, partition_warn) = mark(status.partition_percent_used(), 97);
            write!(f, "{:<25}{quota:>15}{:>11}{used:>8}{partition:>12}", status.name, status.used_kib)?;
            writeln!(f, "{}", if warn || partition_warn { "  <<WARNING" } else { "" })?;
        }
        Ok(())
    }
}

/// A percentage, marked if it is above the limit.
fn mark(percent: Option<u64>, limit: u64) -> (String, bool) {
    let over = percent.is_some_and(|p| p > limit);
    (format!("{}%{}", percent.unwrap_or(0), if over { "<<" } else { "" }), over)
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|s| match s.percent_used() {
            Some(percent) => writeln!(f, "{percent}% of quota used."),
            None => writeln!(f, "no limit"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::volume_status::example;
    use super::*;

    #[test]
    fn the_table_has_the_fields_columns() {
        let full = VolumeStatus { name: "u.bob".into(), used_kib: 4990, ..example() };
        let none = VolumeStatus { name: "big".into(), quota_kib: 0, ..example() };
        assert_eq!(
            List(vec![example(), full, none]).to_string(),
            "Volume Name                        Quota       Used   %Used   Partition\n\
             root.cell                           5000       1234     25%         10%\n\
             u.bob                               5000       4990  100%<<         10%  <<WARNING\n\
             big                             no limit       1234      0%         10%\n"
        );
        assert_eq!(Percent(vec![example()]).to_string(), "25% of quota used.\n");
    }
}
