//! `andrew vos listvol`.

use super::entries;
use super::reach::Target;
use super::show::ShownVolume;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::{PartitionId, PartitionNumber};
use afs_wire::vol::{ListVolumes, XListPartitions};
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

/// Options of `andrew vos listvol`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  andrew vos listvol\n  andrew vos listvol -server localhost -partition a -long"
)]
pub struct Args {
    /// Server; the cell's own if left out
    #[arg(value_name = "SERVER")]
    bare_server: Option<String>,
    /// Partition; all if left out
    #[arg(value_name = "PARTITION")]
    bare_partition: Option<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with = "bare_server")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION", conflicts_with = "bare_partition")]
    partition: Option<String>,
    /// Show everything there is to know
    #[arg(long)]
    long: bool,
}

#[derive(Serialize)]
struct Partition {
    server: Ipv4Addr,
    partition: String,
    volumes: Vec<ShownVolume>,
    #[serde(skip)]
    long: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<Partition>);

/// Has the server look into every volume, not only name it.
const ALL_FIELDS: i32 = 1;

impl Args {
    /// Prints the volumes of each partition.
    ///
    /// # Errors
    /// A server or partition that makes no sense, or does not answer.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let server = server(target, self.server.or(self.bare_server))?;
        let wanted = self.partition.or(self.bare_partition);
        let mut partitions = Vec::new();
        for partition in partitions_of(target, server, wanted.as_deref())? {
            let request = ListVolumes { partition: PartitionNumber::from(partition), flags: ALL_FIELDS };
            let reply =
                target.volume(server, &request).map_err(|f| f.during("Could not list the volumes"))?;
            let name = partition.to_string();
            let mut volumes: Vec<_> =
                reply.volumes.iter().map(|info| ShownVolume::new(info, server, name.clone())).collect();
            volumes.sort_by(|a, b| a.name.cmp(&b.name).then(a.id.cmp(&b.id)));
            partitions.push(Partition { server, partition: name, volumes, long: self.long });
        }
        output::show(json, &Answer(partitions));
        Ok(())
    }
}

/// The server named, or the cell's own.
pub(super) fn server(target: &Target, named: Option<String>) -> CommandResult<Ipv4Addr> {
    match named {
        Some(name) => target.server(&name),
        None => target
            .own_server()
            .ok_or_else(|| CommandError::usage("vos: name a server of the cell, by its address")),
    }
}

/// The partitions of a server, or the one that is wanted.
pub(super) fn partitions_of(
    target: &mut Target,
    server: Ipv4Addr,
    wanted: Option<&str>,
) -> CommandResult<Vec<PartitionId>> {
    let reply =
        target.volume(server, &XListPartitions {}).map_err(|f| f.during("Could not list the partitions"))?;
    let all: Vec<_> = reply.partitions.iter().filter_map(|p| p.check()).collect();
    let Some(text) = wanted else { return Ok(all) };
    let one = text.parse::<PartitionId>().ok().filter(|p| all.contains(p));
    one.map(|p| vec![p]).ok_or_else(|| {
        let there: Vec<_> = all.iter().map(|p| entries::partition(Some(*p))).collect();
        CommandError::usage(format!(
            "vos: partition '{text}' does not exist on {server}; it has {}",
            there.join(", ")
        ))
    })
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Partition { server, partition, volumes, long } in &self.0 {
            let mut text = String::new();
            writeln!(
                text,
                "Total number of volumes on server {server} partition {partition}: {} ",
                volumes.len()
            )?;
            for volume in volumes {
                volume.line(&mut text, *long)?;
                if *long {
                    volume.details(&mut text)?;
                    text.push('\n');
                }
            }
            let count = |status: &str, online| {
                volumes
                    .iter()
                    .filter(|v| v.status == status && (status != "OK" || v.online == online))
                    .count()
            };
            let (on, off, busy) = (count("OK", true), count("OK", false), count("BUSY", true));
            writeln!(
                f,
                "{text}\nTotal volumes onLine {on} ; Total volumes offLine {off} ; Total busy {busy}\n"
            )?;
        }
        Ok(())
    }
}
