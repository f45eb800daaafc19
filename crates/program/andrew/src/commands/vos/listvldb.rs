//! `andrew vos listvldb`: entries of the location database.

use super::entries::ShownEntry;
use super::ops::{Ops, partition_id};
use crate::error::CommandResult;
use crate::output;
use afs_admin::EntryFilter;
use serde::Serialize;
use std::fmt;

/// Options of `andrew vos listvldb`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew vos listvldb\n  andrew vos listvldb -name root.cell")]
pub struct Args {
    /// Only this volume, by name or number
    #[arg(value_name = "NAME")]
    bare: Option<String>,
    /// The same, as OpenAFS's vos takes it
    #[arg(long, value_name = "NAME", conflicts_with = "bare")]
    name: Option<String>,
    /// Only volumes on this server
    #[arg(long, value_name = "SERVER")]
    server: Option<String>,
    /// Only volumes on this partition
    #[arg(long, value_name = "PARTITION")]
    partition: Option<String>,
    /// Only locked entries
    #[arg(long)]
    locked: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct VldbEntries(Vec<ShownEntry>);

impl Args {
    /// Prints the entries, sorted by name.
    ///
    /// # Errors
    /// An invalid name, server or partition, or no location server replies.
    pub fn run(self, ops: &Ops, json: bool) -> CommandResult {
        let filter = EntryFilter {
            server: self.server.as_deref().map(|s| ops.server(s)).transpose()?,
            partition: self.partition.as_deref().map(partition_id).transpose()?,
            locked: self.locked,
        };
        let entries = match self.bare.or(self.name) {
            Some(name) => vec![ops.run(|admin| async move { admin.group(&name).await })?.entry],
            None => ops.run(|admin| async move { admin.entries(&filter).await })?,
        };
        output::show(json, &VldbEntries(entries.iter().map(ShownEntry::from).collect()));
        Ok(())
    }
}

impl fmt::Display for VldbEntries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.0 {
            writeln!(f, "{} \n{entry}", entry.name)?;
        }
        writeln!(f, "Total entries: {}", self.0.len())
    }
}
