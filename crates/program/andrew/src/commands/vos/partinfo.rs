//! `andrew vos partinfo`: free space of partitions.

use super::listvol::places;
use super::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use crate::units;
use afs_admin::{Admin, AdminResult};
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos partinfo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Sizes are in units of 1024 bytes.\n\nExamples:\n  andrew vos partinfo localhost")]
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
}

#[derive(Serialize)]
struct FreeSpace {
    partition: String,
    /// `online`, `failing` or `offline`.
    state: &'static str,
    /// Null where it is not on line.
    #[serde(rename = "free_bytes", serialize_with = "units::some_bytes")]
    free_kib: Option<i64>,
    #[serde(rename = "total_bytes", serialize_with = "units::some_bytes")]
    total_kib: Option<i64>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct PartitionSpace(Vec<FreeSpace>);

impl Args {
    /// Prints the free space.
    ///
    /// # Errors
    /// An invalid server or partition, or the server does not reply.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let server = ops.server_or_own(self.server.or(self.bare_server).as_deref())?;
        let wanted = self.partition.or(self.bare_partition);
        let free_space =
            ops.run(|admin| async move { free_space(&admin, server, wanted.as_deref()).await })?;
        output::show(json, &PartitionSpace(free_space));
        Ok(())
    }
}

async fn free_space(admin: &Admin, server: Ipv4Addr, wanted: Option<&str>) -> AdminResult<Vec<FreeSpace>> {
    let mut free_space = Vec::new();
    for place in places(admin, server, wanted).await? {
        let state = admin.partition_state(place).await?;
        let room = state.room();
        free_space.push(FreeSpace {
            partition: super::entries::partition(place.partition.check()),
            state: state.word(),
            free_kib: room.map(|room| room.free_kib),
            total_kib: room.map(|room| room.total_kib),
        });
    }
    Ok(free_space)
}

impl fmt::Display for PartitionSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for FreeSpace { partition, state, free_kib, total_kib } in &self.0 {
            match free_kib.zip(*total_kib) {
                Some((free, total)) => {
                    writeln!(f, "Free space on partition {partition}: {free} K blocks out of total {total}")?;
                }
                None => {
                    writeln!(f, "Partition {partition} is {state}; `andrew status` on its server says why")?;
                }
            }
        }
        Ok(())
    }
}
