//! `andrew vos status`: open transactions of a volume server.

use super::dates;
use super::entries;
use super::operations::Shown as Operation;
use super::ops::Ops;
use crate::error::CommandResult;
use crate::output;
use crate::units;
use afs_wire::ids::UnixSeconds;
use serde::Serialize;
use std::fmt;
use std::net::Ipv4Addr;

/// Options of `andrew vos status`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos status localhost")]
pub struct Args {
    /// Server [default: the one that runs here]
    #[arg(value_name = "SERVER")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "SERVER", conflicts_with = "bare")]
    server: Option<String>,
}

#[derive(Serialize)]
struct Transaction {
    id: i32,
    #[serde(serialize_with = "units::time")]
    created: u32,
    #[serde(rename = "volume_id")]
    volume: u32,
    partition: String,
    last_procedure: String,
    /// The operation it belongs to, if the journal may be read and has it.
    operation: Option<Operation>,
}

#[derive(Serialize)]
struct TransactionList {
    server: Ipv4Addr,
    transactions: Vec<Transaction>,
}

impl Args {
    /// Prints the open transactions.
    ///
    /// # Errors
    /// An invalid server, or it does not reply.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let server = ops.server_or_own(self.server.or(self.bare).as_deref())?;
        let (open, records) = ops.run(|admin| async move {
            let open = admin.status(server).await?;
            // Users who may not read the journal see the transactions all the same.
            let records = if open.is_empty() { None } else { admin.operations().await.ok() };
            Ok((open, records.unwrap_or_default()))
        })?;
        let one = |t: &afs_wire::vol::TransactionInfo| Transaction {
            id: t.id.0,
            created: t.created.0,
            volume: t.volume.0,
            partition: entries::partition(t.partition.check()),
            last_procedure: t.last_procedure.to_string(),
            operation: records.iter().find(|r| r.works_on(t.volume)).map(Operation::from),
        };
        output::show(json, &TransactionList { server, transactions: open.iter().map(one).collect() });
        Ok(())
    }
}

impl fmt::Display for TransactionList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.transactions.is_empty() {
            return writeln!(f, "No active transactions on {}", self.server);
        }
        writeln!(f, "Total transactions: {}", self.transactions.len())?;
        for t in &self.transactions {
            writeln!(f, "--------------------------------------")?;
            writeln!(f, "transaction: {}  created: {}", t.id, dates::show(UnixSeconds(t.created)))?;
            writeln!(f, "volume: {}  partition: {}  procedure: {}", t.volume, t.partition, t.last_procedure)?;
            if let Some(operation) = &t.operation {
                writeln!(f, "operation: {operation}")?;
            }
        }
        writeln!(f, "--------------------------------------")
    }
}
