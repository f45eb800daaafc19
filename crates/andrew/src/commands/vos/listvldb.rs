//! `andrew vos listvldb`.

use super::entries::{self, ShownEntry};
use super::reach::Target;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::{PartitionId, PartitionNumber};
use afs_wire::vl::{Attributes, EntryFlags, ListAttributesN2, NameText};
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
struct Answer(Vec<ShownEntry>);

impl Args {
    /// Prints the entries, sorted by name.
    ///
    /// # Errors
    /// A name, server or partition that makes no sense, or no location server answers.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let entries = match self.bare.as_ref().or(self.name.as_ref()) {
            Some(name) => vec![ShownEntry::from(&entries::find(target, name)?)],
            None => self.list(target)?,
        };
        output::show(json, &Answer(entries));
        Ok(())
    }

    fn list(&self, target: &mut Target) -> CommandResult<Vec<ShownEntry>> {
        let partition = self.partition.as_deref().map(|text| {
            text.parse::<PartitionId>().map(PartitionNumber::from).map_err(|_| {
                CommandError::usage(format!(
                    "vos: could not interpret partition name '{text}'; give a letter, vicepa or /vicepa"
                ))
            })
        });
        let attributes = Attributes {
            server: self.server.as_deref().map(|s| target.server(s)).transpose()?,
            partition: partition.transpose()?,
            volume: None,
            flag: self.locked.then_some(EntryFlags::LOCK_OPERATIONS.0),
        };
        let mut found = Vec::new();
        let mut start = 0;
        loop {
            let request = ListAttributesN2 { attributes, name: NameText::default(), start };
            let page =
                target.locate(&request).map_err(|f| f.during("Could not access the VLDB for attributes"))?;
            found.extend(page.entries.iter().map(ShownEntry::from));
            // -1 ends the list; anything that does not go on would go round for ever.
            if page.next <= start {
                break;
            }
            start = page.next;
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.0 {
            writeln!(f, "{} \n{entry}", entry.name)?;
        }
        writeln!(f, "Total entries: {}", self.0.len())
    }
}
