//! `andrew vos status`.

use super::dates;
use super::entries;
use super::listvol::server;
use super::reach::Target;
use crate::error::CommandResult;
use crate::output;
use afs_wire::ids::UnixSeconds;
use afs_wire::vol::Monitor;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos status localhost")]
pub struct Args {
    /// Server; the cell's own if left out
    #[arg(value_name = "SERVER")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with = "bare")]
    server: Option<String>,
}

#[derive(Serialize)]
struct Transaction {
    id: i32,
    created: u32,
    volume: u32,
    partition: String,
    last_procedure: String,
}

#[derive(Serialize)]
struct Answer {
    server: Ipv4Addr,
    transactions: Vec<Transaction>,
}

impl Args {
    /// Prints the open transactions.
    ///
    /// # Errors
    /// A server that makes no sense, or does not answer.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let server = server(target, self.server.or(self.bare))?;
        let reply =
            target.volume(server, &Monitor {}).map_err(|f| f.during("Could not access the volume server"))?;
        let one = |t: &afs_wire::vol::TransactionInfo| Transaction {
            id: t.id.0,
            created: t.created.0,
            volume: t.volume.0,
            partition: entries::partition(t.partition.check()),
            last_procedure: t.last_procedure.to_string(),
        };
        output::show(json, &Answer { server, transactions: reply.transactions.iter().map(one).collect() });
        Ok(())
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transactions.is_empty() {
            return writeln!(f, "No active transactions on {}", self.server);
        }
        writeln!(f, "Total transactions: {}", self.transactions.len())?;
        for t in &self.transactions {
            writeln!(f, "--------------------------------------")?;
            writeln!(f, "transaction: {}  created: {}", t.id, dates::show(UnixSeconds(t.created)))?;
            writeln!(f, "volume: {}  partition: {}  procedure: {}", t.volume, t.partition, t.last_procedure)?;
        }
        writeln!(f, "--------------------------------------")
    }
}
