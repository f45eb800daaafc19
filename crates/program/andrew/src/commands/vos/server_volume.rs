//! `andrew vos zap`, `online`, `offline` and `endtrans`: commands on a volume or transaction of one server.

use super::ops::{Ops, volume_id};
use super::site_words::named;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_admin::ServerPartition;
use afs_wire::ids::VolumeId;
use afs_wire::vol::TransactionId;
use serde::Serialize;
use std::fmt;

/// Arguments for a volume at a server.
#[derive(clap::Args, Debug)]
pub struct ServerVolume {
    /// Server, partition and the volume's name or number
    #[arg(value_name = "SERVER PARTITION NUMBER", num_args = 0..=3)]
    bare: Vec<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Name or number, as OpenAFS's vos takes it
    #[arg(long, value_name = "NUMBER")]
    id: Option<String>,
}

/// Options of `andrew vos zap`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The location database is neither read nor changed: `andrew vos remove` does both.

Examples:
  andrew vos zap 192.0.2.1 a 536870930")]
pub struct ZapArgs {
    #[command(flatten)]
    at: ServerVolume,
    /// Delete the volume however damaged it is
    #[arg(long)]
    force: bool,
}

/// Options of `andrew vos offline`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  andrew vos offline 192.0.2.1 a projects\n  andrew vos online 192.0.2.1 a projects"
)]
pub struct OfflineArgs {
    #[command(flatten)]
    at: ServerVolume,
    /// Make clients wait instead of refusing them
    #[arg(long)]
    busy: bool,
    /// Seconds to stay off line [default: until it is brought on line again]
    #[arg(long, value_name = "SECONDS")]
    sleep: Option<u32>,
}

/// Options of `andrew vos endtrans`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos status 192.0.2.1\n  andrew vos endtrans 192.0.2.1 17")]
pub struct EndArgs {
    /// Server and the transaction's number
    #[arg(value_name = "SERVER NUMBER", num_args = 0..=2)]
    bare: Vec<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Number, as OpenAFS's vos takes it
    #[arg(long, value_name = "NUMBER")]
    transaction: Option<i32>,
}

#[derive(Serialize)]
struct StateChange {
    #[serde(rename = "id")]
    volume: u32,
    place: String,
    state: &'static str,
}

impl ServerVolume {
    fn parts(self, ops: &Ops) -> CommandResult<(ServerPartition, VolumeId)> {
        let (place, volume) = ops.place_and_volume(named(self.bare, self.server, self.partition, self.id))?;
        let id = match volume_id(&volume) {
            Ok(id) => id,
            Err(_) => ops.run(|admin| async move { admin.group(&volume).await })?.wanted(),
        };
        Ok((place, id))
    }

    /// Brings the volume on line.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::online`].
    pub fn online(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.parts(ops)?;
        ops.run(|admin| async move { admin.online(place, volume).await })?;
        shown(json, volume, place, "on line")
    }
}

impl OfflineArgs {
    /// Takes the volume off line.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::offline`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.at.parts(ops)?;
        ops.run(|admin| async move { admin.offline(place, volume, self.busy, self.sleep).await })?;
        shown(json, volume, place, if self.sleep.is_some() { "on line again" } else { "off line" })
    }
}

impl ZapArgs {
    /// Deletes the volume.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::zap`]; or the volume does not exist.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let (place, volume) = self.at.parts(ops)?;
        let there = ops.run(|admin| async move { admin.zap(place, volume, self.force).await })?;
        if !there && !self.force {
            return Err(CommandError::usage(format!(
                "vos: volume {volume} is not on {place}; `andrew vos listvol {}` shows those that are",
                place.server
            )));
        }
        shown(json, volume, place, "deleted")
    }
}

impl EndArgs {
    /// Ends the transaction.
    ///
    /// # Errors
    /// See [`afs_admin::Admin::end_transaction`].
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let mut bare = self.bare.into_iter();
        let missing = || CommandError::usage("vos: give a server and the number of one of its transactions");
        let server = self.server.or_else(|| bare.next()).ok_or_else(missing)?;
        let server = ops.server(&server)?;
        let number =
            self.transaction.or_else(|| bare.next().and_then(|n| n.parse().ok())).ok_or_else(missing)?;
        ops.run(|admin| async move { admin.end_transaction(server, TransactionId(number)).await })?;
        output::show(json, &Ended { server: server.to_string(), transaction: number });
        Ok(())
    }
}

#[derive(Serialize)]
struct Ended {
    server: String,
    transaction: i32,
}

fn shown(json: bool, volume: VolumeId, place: ServerPartition, state: &'static str) -> CommandResult {
    output::show(json, &StateChange { volume: volume.0, place: place.to_string(), state });
    Ok(())
}

impl fmt::Display for StateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} on {} is {}", self.volume, self.place, self.state)
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Transaction {} on {} ended", self.transaction, self.server)
    }
}
