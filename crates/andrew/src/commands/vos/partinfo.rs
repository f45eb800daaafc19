//! `andrew vos partinfo`.

use super::listvol::{partitions_of, server};
use super::reach::Target;
use crate::error::CommandResult;
use crate::output;
use afs_wire::vol::{PartitionInfo64, PartitionText};
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos partinfo`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Sizes are in units of 1024 bytes.\n\nExamples:\n  andrew vos partinfo localhost")]
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
}

#[derive(Serialize)]
struct Room {
    partition: String,
    free_kib: i64,
    total_kib: i64,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Answer(Vec<Room>);

impl Args {
    /// Prints the room.
    ///
    /// # Errors
    /// A server or partition that makes no sense, or does not answer.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let server = server(target, self.server.or(self.bare_server))?;
        let wanted = self.partition.or(self.bare_partition);
        let mut rooms = Vec::new();
        for partition in partitions_of(target, server, wanted.as_deref())? {
            let name = partition.to_string();
            let request = PartitionInfo64 { name: PartitionText::truncated(name.as_bytes()) };
            let reply = target
                .volume(server, &request)
                .map_err(|f| f.during(&format!("Could not get the room on {name}")))?;
            rooms.push(Room {
                partition: name,
                free_kib: reply.partition.free,
                total_kib: reply.partition.total,
            });
        }
        output::show(json, &Answer(rooms));
        Ok(())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Room { partition, free_kib, total_kib } in &self.0 {
            writeln!(f, "Free space on partition {partition}: {free_kib} K blocks out of total {total_kib}")?;
        }
        Ok(())
    }
}
