//! `andrew vos create`.

use super::entries;
use super::reach::{Failure, Target};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::{KindNumber, PartitionId, PartitionNumber, VolumeId, VolumeKind, VolumeName};
use afs_wire::vl::{CreateEntryN, Entry, EntryFlags, GetNewVolumeId, NameChars, Site, SiteFlags};
use afs_wire::vol::{
    CreateVolume, DeleteVolume, EndTrans, NameText, SetFlags, SetInfo, TransactionId, VolumeFlags,
    VolumeInfo, XListPartitions,
};
use afs_wire::xdr::BoundedVec;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos create`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew vos create [OPTIONS] SERVER PARTITION NAME\n       andrew vos create [OPTIONS] NAME",
    after_help = "\
For the cell that runs here the name alone is enough.

Examples:
  andrew vos create projects && andrew fs mkmount ~/afs/projects projects
  andrew vos create -server localhost -partition a -name projects -maxquota 5000000"
)]
pub struct Args {
    /// Server, partition and the volume's name
    #[arg(value_name = "SERVER PARTITION NAME", num_args = 0..=3)]
    bare: Vec<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Name, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Quota in units of 1024 bytes; 0 is no limit
    #[arg(long, value_name = "KIB", default_value_t = 5000, value_parser = clap::value_parser!(i32).range(0..))]
    maxquota: i32,
}

#[derive(Serialize)]
struct Answer {
    name: String,
    id: u32,
    server: Ipv4Addr,
    partition: String,
}

/// A volume to be made.
struct Plan {
    name: VolumeName,
    server: Ipv4Addr,
    partition: PartitionId,
    quota: i32,
}

impl Args {
    /// Makes the volume and its entry (docs/protocol/volserver.md "create").
    ///
    /// # Errors
    /// A name that is taken or cannot be, no such partition, or the servers' refusal; nothing is left
    /// behind then.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let plan = self.plan(target)?;
        check(target, &plan)?;
        let ids = [new_id(target)?, new_id(target)?, new_id(target)?];
        let transaction = make(target, &plan, ids[0])?;
        let published = publish(target, &plan, ids, transaction);
        if published.is_err() {
            // The volume is of no use without its entry. Should this fail too, the server removes it by itself.
            let _ = target.volume(plan.server, &DeleteVolume { transaction });
        }
        let ended = target.volume(plan.server, &EndTrans { transaction });
        published?;
        ended.map_err(|f| f.during("Could not end the transaction on the new volume"))?;
        let Plan { name, server, partition, .. } = plan;
        output::show(
            json,
            &Answer { name: name.to_string(), id: ids[0].0, server, partition: partition.to_string() },
        );
        Ok(())
    }

    fn plan(&self, target: &Target) -> CommandResult<Plan> {
        let mut bare = self.bare.iter().map(String::as_str).collect::<Vec<_>>();
        let missing = || {
            CommandError::usage(
                "vos: create needs a server, a partition and a name; see `andrew vos create --help`",
            )
        };
        let name = self.name.as_deref().or_else(|| bare.pop()).ok_or_else(missing)?;
        let mut bare = bare.into_iter();
        let server = match self.server.as_deref().or_else(|| bare.next()) {
            Some(server) => target.server(server)?,
            None => target.own_server().ok_or_else(missing)?,
        };
        let partition = match self.partition.as_deref().or_else(|| bare.next()) {
            Some(text) => text.parse::<PartitionId>().map_err(|_| {
                CommandError::usage(format!(
                    "vos: could not interpret partition name '{text}'; give a letter, vicepa or /vicepa"
                ))
            })?,
            None if target.own_server().is_some() => PartitionId(0),
            None => return Err(missing()),
        };
        if bare.next().is_some() {
            return Err(missing());
        }
        let good =
            VolumeName::new(name).ok().filter(|n| name.len() <= VolumeName::BASE_MAX && !n.is_number());
        let name = good.ok_or_else(|| entries::bad_name(name))?;
        Ok(Plan { name, server, partition, quota: self.maxquota })
    }
}

fn check(target: &mut Target, plan: &Plan) -> CommandResult {
    let partitions = target
        .volume(plan.server, &XListPartitions {})
        .map_err(|f| f.during("Could not list the partitions"))?;
    if !partitions.partitions.iter().any(|p| p.check() == Some(plan.partition)) {
        return Err(CommandError::usage(format!(
            "vos: partition {} does not exist on {}; `andrew vos partinfo {}` shows those that do",
            plan.partition, plan.server, plan.server
        )));
    }
    if entries::look_up(target, plan.name.as_str())?.is_some() {
        return Err(CommandError::usage(format!(
            "vos: Volume {} already exists; give another name, or remove it with `andrew vos remove`",
            plan.name
        )));
    }
    Ok(())
}

fn new_id(target: &mut Target) -> CommandResult<VolumeId> {
    let reply = target.locate(&GetNewVolumeId { count: 1 });
    reply.map(|r| r.first).map_err(|f| f.during("Could not get an ID for the volume from the VLDB"))
}

fn make(target: &mut Target, plan: &Plan, id: VolumeId) -> CommandResult<TransactionId> {
    let name = NameText::new(plan.name.as_str()).map_err(|_| entries::bad_name(plan.name.as_str()))?;
    let request = CreateVolume {
        partition: PartitionNumber::from(plan.partition),
        name,
        kind: KindNumber::from(VolumeKind::ReadWrite),
        parent: VolumeId(0),
        volume: id,
    };
    let reply = target.volume(plan.server, &request);
    reply
        .map(|r| r.transaction)
        .map_err(|f| f.during(&format!("Failed to create the volume {} {}", plan.name, id.0)))
}

/// Sets the quota, brings the volume on line and writes its entry.
fn publish(
    target: &mut Target,
    plan: &Plan,
    ids: [VolumeId; 3],
    transaction: TransactionId,
) -> CommandResult {
    let failed = |f: Failure| f.during("Could not set up the new volume");
    let info = VolumeInfo { quota_max: plan.quota, ..VolumeInfo::unchanged() };
    target.volume(plan.server, &SetInfo { transaction, info }).map_err(failed)?;
    target.volume(plan.server, &SetFlags { transaction, flags: VolumeFlags(0) }).map_err(failed)?;
    let site = Site {
        server: plan.server,
        partition: PartitionNumber::from(plan.partition),
        flags: SiteFlags::RW_VOLUME,
    };
    let entry = Entry {
        name: NameChars::truncated(plan.name.as_str().as_bytes()),
        sites: BoundedVec::first_of([site]),
        ids,
        flags: EntryFlags::RW_EXISTS,
        ..Entry::default()
    };
    let created = target.locate(&CreateEntryN { entry });
    created.map(drop).map_err(|f| f.during("Could not create a VLDB entry for the volume"))
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Volume {} created on partition {} of {}", self.id, self.partition, self.server)
    }
}
