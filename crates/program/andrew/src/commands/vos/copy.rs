//! `andrew vos copy` and `andrew vos shadow`: copy a volume.

use super::ops::{Ops, volume_id};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::CopyOptions;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos copy` and `shadow`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  andrew vos copy -id projects -toname projects.old -toserver 192.0.2.2 -topartition a
  andrew vos shadow -id projects -toserver 192.0.2.2 -topartition a -incremental")]
pub struct Args {
    /// The volume's name or number
    #[arg(long, value_name = "NAME")]
    id: String,
    /// Accepted for scripts: the volume is found by its entry
    #[arg(long, value_name = "SERVER", hide = true)]
    fromserver: Option<String>,
    /// Accepted for scripts
    #[arg(long, value_name = "PARTITION", hide = true)]
    frompartition: Option<String>,
    /// Name of the copy [default of a shadow: that of the volume]
    #[arg(long, value_name = "NAME")]
    toname: Option<String>,
    /// Server of the copy
    #[arg(long, value_name = "SERVER")]
    toserver: Option<String>,
    /// Partition of the copy
    #[arg(long, value_name = "PARTITION")]
    topartition: Option<String>,
    /// Number of the copy [default: the next free one; for a shadow that of the volume]
    #[arg(long, value_name = "NUMBER")]
    toid: Option<String>,
    /// Leave the copy off line
    #[arg(long)]
    offline: bool,
    /// Make it a read-only volume
    #[arg(long)]
    readonly: bool,
    /// Send it while the volume's clients wait: needs no space for a clone
    #[arg(long)]
    live: bool,
    /// For a shadow: send only the changes since the last one
    #[arg(long)]
    incremental: bool,
}

#[derive(Serialize)]
struct Copied {
    #[serde(rename = "id")]
    volume: u32,
    name: String,
    to: String,
}

impl Args {
    /// Copies the volume; creates an entry unless it is a shadow.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::copy_volume`].
    pub fn run(self, ops: &Ops, json: bool, shadow: bool) -> CommandResult {
        let to = ops.needed_place(self.toserver.as_deref(), self.topartition.as_deref())?;
        let name = match self.toname {
            Some(name) => name,
            None if shadow => self.id.clone(),
            None => return Err(CommandError::usage("vos: a copy needs a name; give it with -toname")),
        };
        let options = CopyOptions {
            volume: self.id,
            name: name.clone(),
            to,
            read_only: self.readonly,
            offline: self.offline || shadow,
            live: self.live,
            shadow,
            id: self.toid.as_deref().map(volume_id).transpose()?,
            incremental: self.incremental,
        };
        let copied = ops.run(|admin| async move { admin.copy_volume(options).await })?;
        output::show(json, &Copied { volume: copied.volume.0, name, to: to.to_string() });
        Ok(())
    }
}

impl fmt::Display for Copied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} ({}) made on {}", self.name, self.volume, self.to)
    }
}
