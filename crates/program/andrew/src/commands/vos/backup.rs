//! `andrew vos backup` and `andrew vos backupsys`: backup volumes.

use super::ops::{Ops, partition_id};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::BackupAll;
use afs_wire::ids::PartitionNumber;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos backup`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos backup projects")]
pub struct Args {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
}

/// Options of `andrew vos backupsys`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
If one volume fails, the others are still backed up; the exit status is 1 then.

Examples:
  andrew vos backupsys
  andrew vos backupsys -prefix user -server 192.0.2.1")]
pub struct AllArgs {
    /// Only volumes on this server
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Only volumes on this partition
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Only volumes whose names begin with this
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    prefix: Vec<String>,
    /// No volumes whose names begin with this
    #[arg(long, value_name = "PREFIX", num_args = 1..)]
    xprefix: Vec<String>,
    /// Only show which volumes would be backed up
    #[arg(long)]
    dryrun: bool,
}

#[derive(Serialize)]
struct BackedUpVolume {
    name: String,
    #[serde(rename = "backup_id")]
    backup: Option<u32>,
    error: Option<String>,
}

#[derive(Serialize)]
struct BackupReport {
    volumes: Vec<BackedUpVolume>,
    dry_run: bool,
}

impl Args {
    /// Creates the backup volume, or brings it up to date.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::backup`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let name = self.bare.or(self.id).unwrap_or_default();
        let done = ops.run(|admin| async move { admin.backup(&name).await })?;
        let one = BackedUpVolume { name: done.name, backup: Some(done.backup.0), error: None };
        output::show(json, &BackupReport { volumes: vec![one], dry_run: false });
        Ok(())
    }
}

impl AllArgs {
    /// Creates the backup volumes of many volumes.
    ///
    /// # Errors
    /// The location database cannot be listed, or one of the volumes could not be backed up.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let which = BackupAll {
            server: self.server.as_deref().map(|s| ops.server(s)).transpose()?,
            partition: self.partition.as_deref().map(partition_id).transpose()?.map(PartitionNumber::from),
            prefixes: self.prefix,
            except: self.xprefix,
            dry_run: self.dryrun,
        };
        let done = ops.run(|admin| async move { admin.backup_all(&which).await })?;
        let one = |(name, outcome): (String, afs_admin::AdminResult<afs_admin::BackedUp>)| match outcome {
            Ok(done) => BackedUpVolume { name, backup: Some(done.backup.0), error: None },
            Err(error) => BackedUpVolume { name, backup: None, error: Some(error.to_string()) },
        };
        let volumes: Vec<BackedUpVolume> = done.into_iter().map(one).collect();
        let failed = volumes.iter().filter(|v| v.error.is_some()).count();
        let of = volumes.len();
        output::show(json, &BackupReport { volumes, dry_run: self.dryrun });
        if failed == 0 {
            return Ok(());
        }
        Err(CommandError::failed(format!("vos: {failed} of {of} volumes could not be backed up")))
    }
}

impl fmt::Display for BackupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = if self.dry_run { "Would have backed up" } else { "Created backup volume for" };
        for volume in &self.volumes {
            match &volume.error {
                None => writeln!(f, "{done} {}", volume.name)?,
                Some(error) => writeln!(f, "{}: {error}", volume.name)?,
            }
        }
        Ok(())
    }
}
