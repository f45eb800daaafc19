//! `andrew vos snapshot`: named snapshots of a volume.

use super::dates;
use super::ops::Ops;
use super::snapshot_schedule;
use crate::error::CommandResult;
use crate::output;
use crate::units;
use afs_wire::ids::UnixSeconds;
use clap::Subcommand;
use serde::Serialize;
use std::fmt;

/// `andrew vos snapshot`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Making a snapshot copies no data. Servers make one for each day by schedule (`andrew vos snapshot schedule`). A snapshot is
a read-only volume named VOLUME.NAME, and the directory .snapshots/NAME
in the volume's root shows it.

Examples:
  andrew vos snapshot create projects 2026-11-21
  andrew vos snapshot list projects
  andrew vos snapshot restore projects 2026-11-21
  andrew vos snapshot remove projects 2026-11-21")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make a snapshot of a volume
    Create(Named),
    /// Show the snapshots of a volume, newest first
    List(VolumeArg),
    /// Remove a snapshot
    #[command(visible_alias = "delete")]
    Remove(Named),
    /// Restore a volume to the state of a snapshot; its present state is lost
    Restore(Named),
    /// Show or change the schedule of the servers' snapshots
    Schedule(snapshot_schedule::Args),
}

#[derive(clap::Args, Debug)]
struct Named {
    /// The volume's name or number
    volume: String,
    /// The snapshot's name: letters, digits, '-' and '_'
    name: String,
}

#[derive(clap::Args, Debug)]
struct VolumeArg {
    /// The volume's name or number
    volume: String,
}

#[derive(Serialize)]
struct Shown {
    name: String,
    #[serde(rename = "id")]
    volume: u32,
    #[serde(serialize_with = "units::time")]
    created: u32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct List(Vec<Shown>);

#[derive(Serialize)]
struct Changed {
    done: &'static str,
    volume: String,
    name: String,
}

impl Args {
    /// Runs the subcommand.
    ///
    /// # Errors
    /// See the operations of [`afs_admin::Admin`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (done, Named { volume, name }) = match self.command {
            Command::Schedule(args) => return args.run(ops, json),
            Command::List(of) => {
                let found = ops.run(|admin| async move { admin.snapshots(&of.volume).await })?;
                let shown =
                    |s: afs_admin::Snapshot| Shown { name: s.name, volume: s.volume.0, created: s.created.0 };
                output::show(json, &List(found.into_iter().map(shown).collect()));
                return Ok(());
            }
            Command::Create(named) => {
                let (volume, name) = (named.volume.clone(), named.name.clone());
                ops.run(|admin| async move { admin.create_snapshot(&volume, &name).await })?;
                ("created", named)
            }
            Command::Remove(named) => {
                let (volume, name) = (named.volume.clone(), named.name.clone());
                ops.run(|admin| async move { admin.remove_snapshot(&volume, &name).await })?;
                ("removed", named)
            }
            Command::Restore(named) => {
                let (volume, name) = (named.volume.clone(), named.name.clone());
                ops.run(|admin| async move { admin.restore_snapshot(&volume, &name).await })?;
                ("restored", named)
            }
        };
        output::show(json, &Changed { done, volume, name });
        Ok(())
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Shown { name, volume, created } in &self.0 {
            writeln!(f, "{name:<24} {volume:>10}  {}", dates::show(UnixSeconds(*created)))?;
        }
        Ok(())
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Snapshot {} of {} {}", self.name, self.volume, self.done)
    }
}
