//! `andrew vos listvol`: volumes of a server.

use super::ops::Ops;
use super::volume_text::ShownVolume;
use crate::error::CommandResult;
use crate::output;
use afs_admin::{Admin, AdminError, AdminResult, ServerPartition};
use afs_wire::error::AbortCode;
use afs_wire::ids::PartitionId;
use serde::Serialize;
use std::fmt::{self, Write};
use std::net::Ipv4Addr;

/// Options of `andrew vos listvol`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  andrew vos listvol\n  andrew vos listvol -server localhost -partition a -long"
)]
pub struct Args {
    /// Server [default: the one that runs here]
    #[arg(value_name = "SERVER")]
    bare_server: Option<String>,
    /// Partition [default: all]
    #[arg(value_name = "PARTITION")]
    bare_partition: Option<String>,
    /// Server, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with = "bare_server")]
    server: Option<String>,
    /// Partition, as OpenAFS's vos takes it
    #[arg(long, value_name = "PARTITION", conflicts_with = "bare_partition")]
    partition: Option<String>,
    /// Show all fields of each volume
    #[arg(long)]
    long: bool,
}

#[derive(Serialize)]
struct Partition {
    server: Ipv4Addr,
    partition: String,
    /// `online` or `offline`.
    state: &'static str,
    volumes: Vec<ShownVolume>,
    #[serde(skip)]
    long: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct VolumeList(Vec<Partition>);

impl Args {
    /// Prints the volumes of each partition.
    ///
    /// # Errors
    /// An invalid server or partition, or the server does not reply.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let server = ops.server_or_own(self.server.or(self.bare_server).as_deref())?;
        let wanted = self.partition.or(self.bare_partition);
        let all = |admin| async move { list(&admin, server, wanted.as_deref(), self.long).await };
        output::show(json, &VolumeList(ops.run(all)?));
        Ok(())
    }
}

async fn list(
    admin: &Admin,
    server: Ipv4Addr,
    wanted: Option<&str>,
    long: bool,
) -> AdminResult<Vec<Partition>> {
    let mut partitions = Vec::new();
    for place in places(admin, server, wanted).await? {
        let partition = super::entries::partition(place.partition.check());
        let found = match admin.volumes_on(place).await {
            // The others are listed all the same.
            Err(error) if wanted.is_none() && error.code() == Some(AbortCode::VOFFLINE) => {
                partitions.push(Partition { server, partition, state: "offline", volumes: Vec::new(), long });
                continue;
            }
            found => found?,
        };
        let mut volumes: Vec<_> =
            found.iter().map(|info| ShownVolume::new(info, server, partition.clone())).collect();
        volumes.sort_by(|a, b| a.name.cmp(&b.name).then(a.id.cmp(&b.id)));
        partitions.push(Partition { server, partition, state: "online", volumes, long });
    }
    Ok(partitions)
}

/// The partitions of a server, or the given one.
pub(super) async fn places(
    admin: &Admin,
    server: Ipv4Addr,
    wanted: Option<&str>,
) -> AdminResult<Vec<ServerPartition>> {
    let all = admin.partitions(server).await?;
    let Some(text) = wanted else {
        return Ok(all.into_iter().map(|p| ServerPartition::new(server, p)).collect());
    };
    let one = text.parse::<PartitionId>().ok().filter(|p| all.contains(p));
    one.map(|p| vec![ServerPartition::new(server, p)]).ok_or_else(|| {
        let there: Vec<_> = all.iter().map(ToString::to_string).collect();
        AdminError::refused(
            format!("partition '{text}' does not exist on {server}"),
            format!("it has {}", there.join(", ")),
        )
    })
}

impl fmt::Display for VolumeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Partition { server, partition, state, volumes, long } in &self.0 {
            if *state == "offline" {
                writeln!(
                    f,
                    "Partition {partition} of server {server} is off line; `andrew status` there says why\n"
                )?;
                continue;
            }
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
