//! `andrew fs examine` and `andrew fs diskfree`: status of the volume and partition that hold a path.

use super::getfid::{self, ShownFid};
use super::paths::Paths;
use super::volume_status::VolumeStatus;
use crate::error::CommandResult;
use crate::output;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Options of `andrew fs examine`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew fs examine ~/afs/readme")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
}

/// Options of `andrew fs diskfree`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Sizes are in units of 1024 bytes.\n\nExamples:\n  andrew fs diskfree ~/afs")]
pub struct DiskfreeArgs {
    #[command(flatten)]
    paths: Paths,
}

#[derive(Serialize)]
struct Examined {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    fid: ShownFid,
    volume: VolumeStatus,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Details(Vec<Examined>);

#[derive(Serialize)]
#[serde(transparent)]
struct FreeTable(Vec<VolumeStatus>);

impl Args {
    /// Prints the volumes that hold the paths.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let one =
            |path: PathBuf| Ok(Examined { fid: getfid::of(&path)?, volume: VolumeStatus::of(&path)?, path });
        let examined = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &Details(examined));
        Ok(())
    }
}

impl DiskfreeArgs {
    /// Prints the free space of the partitions.
    ///
    /// # Errors
    /// The first path that is not in AFS.
    pub fn run(self, json: bool) -> CommandResult {
        let all = self.paths.all();
        let statuses = all.iter().map(|p| VolumeStatus::of(p)).collect::<CommandResult<_>>()?;
        output::show(json, &FreeTable(statuses));
        Ok(())
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Examined { path, fid, volume } in &self.0 {
            writeln!(f, "File {} ({fid}) contained in volume {}", path.display(), fid.volume)?;
            writeln!(f, "Volume status for vid = {} named {}", volume.volume_id, volume.name)?;
            if !volume.offline_message.is_empty() {
                writeln!(f, "Current offline message is {}", volume.offline_message)?;
            }
            if !volume.motd.is_empty() {
                writeln!(f, "Message of the day is {}", volume.motd)?;
            }
            match volume.quota_kib {
                0 => writeln!(f, "Current disk quota is unlimited")?,
                quota => writeln!(f, "Current disk quota is {quota}")?,
            }
            writeln!(f, "Current blocks used are {}", volume.used_kib)?;
            writeln!(
                f,
                "The partition has {} blocks available out of {}\n",
                volume.partition_free_kib, volume.partition_total_kib
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for FreeTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<25}{:>12}{:>12}{:>12}{:>7}", "Volume Name", "kbytes", "used", "avail", "%used")?;
        for s in &self.0 {
            let used = s.partition_total_kib.saturating_sub(s.partition_free_kib);
            let percent = s.partition_percent_used().unwrap_or(0);
            let (total, free) = (s.partition_total_kib, s.partition_free_kib);
            writeln!(f, "{:<25}{total:>12}{used:>12}{free:>12}{percent:>6}%", s.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::volume_status::example;
    use super::*;

    #[test]
    fn the_text_equals_that_of_openafs() {
        let fid = ShownFid { volume: 536_870_915, vnode: 1, unique: 1 };
        let answer = Details(vec![Examined { path: "/afs".into(), fid, volume: example() }]);
        assert_eq!(
            answer.to_string(),
            "File /afs (536870915.1.1) contained in volume 536870915\n\
             Volume status for vid = 536870915 named root.cell\n\
             Current disk quota is 5000\n\
             Current blocks used are 1234\n\
             The partition has 900000 blocks available out of 1000000\n\n"
        );
    }
}
