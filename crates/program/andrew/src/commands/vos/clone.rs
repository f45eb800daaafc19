//! `andrew vos clone`: creates a clone of a volume.

use super::ops::{Ops, volume_id};
use crate::error::CommandResult;
use crate::output;
use afs_admin::CloneOptions;
use afs_wire::ids::VolumeKind;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos clone`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The clone is beside the volume and has no entry in the location database; remove it with `andrew vos zap`.

Examples:
  andrew vos clone -id projects -toname projects.before")]
pub struct Args {
    /// The volume's name or number
    #[arg(long, value_name = "NAME")]
    id: String,
    /// Server the volume is on
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition the volume is on
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Name of the clone [default: the volume's with .clone]
    #[arg(long, value_name = "NAME")]
    toname: Option<String>,
    /// Number of the clone [default: the next free one]
    #[arg(long, value_name = "NUMBER")]
    toid: Option<String>,
    /// Leave it off line
    #[arg(long)]
    offline: bool,
    /// Make it a read-only volume, not a backup volume
    #[arg(long)]
    readonly: bool,
    /// Make it a read-write volume, not a backup volume
    #[arg(long, conflicts_with = "readonly")]
    readwrite: bool,
}

#[derive(Serialize)]
struct Cloned {
    #[serde(rename = "id")]
    volume: u32,
    of: String,
    place: String,
}

impl Args {
    /// Creates the clone.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::clone_volume`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let kind = match (self.readonly, self.readwrite) {
            (true, _) => VolumeKind::ReadOnly,
            (_, true) => VolumeKind::ReadWrite,
            _ => VolumeKind::Backup,
        };
        let options = CloneOptions {
            volume: self.id.clone(),
            place: ops.place(self.server.as_deref(), self.partition.as_deref())?,
            name: self.toname,
            id: self.toid.as_deref().map(volume_id).transpose()?,
            kind,
            offline: self.offline,
        };
        let (volume, place) = ops.run(|admin| async move { admin.clone_volume(options).await })?;
        output::show(json, &Cloned { volume: volume.0, of: self.id, place: place.to_string() });
        Ok(())
    }
}

impl fmt::Display for Cloned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Created clone {} of volume {} on {}", self.volume, self.of, self.place)
    }
}
