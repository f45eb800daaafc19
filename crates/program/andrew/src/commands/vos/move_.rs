//! `andrew vos move`: moves a volume to another server or partition.

use super::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use afs_admin::{MoveOptions, Moved};
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos move`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The volume stays in use except at the end of the move. Its contents are sent first, then the
changes made meanwhile; only then its clients wait, until the location database names the new
site. If interrupted before that, the move is undone; after it, completed: by the cell's
servers, or by `andrew vos resume`.

Its snapshots move with it. A backup volume is made anew at the target, with the state of the
move. Read-only copies stay where they are.

Examples:
  andrew vos move projects 192.0.2.2 a
  andrew vos move -id projects -fromserver fs1 -frompartition a -toserver fs2 -topartition b")]
pub struct Args {
    /// The volume's name or number
    #[arg(value_name = "NAME", required_unless_present = "id")]
    bare: Option<String>,
    /// Target server
    #[arg(value_name = "SERVER", required_unless_present = "toserver")]
    bare_server: Option<String>,
    /// Target partition
    #[arg(value_name = "PARTITION", required_unless_present = "topartition")]
    bare_partition: Option<String>,
    /// The volume, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    id: Option<String>,
    /// Server that the volume must be on
    #[arg(long, value_name = "SERVER", requires = "frompartition")]
    fromserver: Option<String>,
    /// Partition that the volume must be on
    #[arg(long, value_name = "PARTITION", requires = "fromserver")]
    frompartition: Option<String>,
    /// Target server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with = "bare_server")]
    toserver: Option<String>,
    /// Target partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION", conflicts_with = "bare_partition")]
    topartition: Option<String>,
    /// Send it in one step while its clients wait: needs no space for a clone
    #[arg(long)]
    live: bool,
    /// Lose its snapshots; required to move a volume with snapshots to a server of another implementation
    #[arg(long)]
    drop_snapshots: bool,
}

#[derive(Serialize)]
struct MoveReport {
    #[serde(rename = "id")]
    volume: u32,
    from: String,
    to: String,
    increments: u32,
    busy_ms: u64,
    backup: bool,
    snapshots: usize,
}

impl Args {
    /// Moves the volume.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::move_volume`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let server = self.toserver.or(self.bare_server);
        let partition = self.topartition.or(self.bare_partition);
        let options = MoveOptions {
            volume: self.bare.or(self.id).unwrap_or_default(),
            from: ops.place(self.fromserver.as_deref(), self.frompartition.as_deref())?,
            to: ops.needed_place(server.as_deref(), partition.as_deref())?,
            live: self.live,
            drop_snapshots: self.drop_snapshots,
        };
        let Moved { volume, from, to, increments, busy_ms, backup, snapshots } =
            ops.run(|admin| async move { admin.move_volume(options).await })?;
        let (from, to) = (from.to_string(), to.to_string());
        output::show(
            json,
            &MoveReport { volume: volume.0, from, to, increments, busy_ms, backup, snapshots },
        );
        Ok(())
    }
}

impl fmt::Display for MoveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} moved from {} to {}", self.volume, self.from, self.to)?;
        writeln!(f, "Its clients waited {} ms", self.busy_ms)
    }
}
