//! `andrew vos remove`: removes a volume and its entry.

use super::entries;
use super::ops::Ops;
use super::removal::Loss;
use super::site_words::{NamedSite, SiteWords};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::RemoveOptions;
use serde::Serialize;
use std::fmt;
use std::io::{self, IsTerminal};
use std::net::Ipv4Addr;

/// Options of `andrew vos remove`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew vos remove [OPTIONS] SERVER PARTITION NAME\n       andrew vos remove [OPTIONS] NAME",
    after_help = "\
The contents of the volume are lost, and so is its backup volume. Mount points of the volume remain;
remove them with `andrew fs rmmount`. Read-only copies remain: NAME.readonly and NAME.backup
remove one copy. A volume at several sites needs SERVER and PARTITION; so does a volume without
an entry in the location database, which is given by its number.

At a terminal, removing a read-write volume that is not empty asks for the volume's name as a
confirmation; --yes skips that. A script is not asked, as with OpenAFS's vos.

Examples:
  andrew vos remove projects
  andrew vos remove 192.0.2.2 a projects.readonly
  andrew vos remove -server localhost -partition a -id 536870918"
)]
pub struct Args {
    #[command(flatten)]
    at: SiteWords,
    /// Name or number, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Remove its snapshots too
    #[arg(long)]
    snapshots: bool,
    /// Skip the confirmation at a terminal
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Removed {
    id: u32,
    server: Ipv4Addr,
    partition: String,
    /// Whether read-only copies of the volume remain.
    copies_remain: bool,
}

impl Args {
    /// Removes the volume and its data in the location database.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::remove`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let NamedSite { volume, server, partition, .. } = self.at.with(self.id);
        let volume = volume.ok_or_else(|| {
            CommandError::usage(
                "vos: remove needs the name or number of a volume; see `andrew vos remove --help`",
            )
        })?;
        let place = ops.place(server.as_deref(), partition.as_deref())?;
        let options = RemoveOptions { volume, place, snapshots: self.snapshots };
        if !self.yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
            let loss = ops.run(|admin| {
                let options = options.clone();
                async move { Loss::of(&admin, &options).await }
            })?;
            loss.map_or(Ok(()), |loss| loss.confirm(io::stdin().lock(), io::stderr()))?;
        }
        let removed = ops.run(|admin| async move { admin.remove(options).await })?;
        let partition = entries::partition(removed.place.partition.check());
        let (id, server, copies_remain) = (removed.volume.0, removed.place.server, removed.copies_remain);
        output::show(json, &Removed { id, server, partition, copies_remain });
        Ok(())
    }
}

impl fmt::Display for Removed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} on partition {} server {} deleted", self.id, self.partition, self.server)?;
        if self.copies_remain {
            writeln!(
                f,
                "Read-only copies of it remain; `andrew vos remove` with NAME.readonly removes them"
            )?;
        }
        Ok(())
    }
}
