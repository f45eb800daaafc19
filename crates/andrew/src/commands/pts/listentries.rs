//! `andrew pts listentries`: all users or groups.

use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::pt::{Entry, ListEntries, list_kinds};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts listentries`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew pts listentries\n  andrew pts listentries -users -groups")]
pub struct Args {
    /// Show users (the default)
    #[arg(long)]
    users: bool,
    /// Show groups
    #[arg(long)]
    groups: bool,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    id: i32,
    owner: i32,
    creator: i32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct EntryList(Vec<Listed>);

impl Args {
    /// Prints all entries; for administrators.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let users = if self.users || !self.groups { list_kinds::USERS } else { 0 };
        let kinds = users | if self.groups { list_kinds::GROUPS } else { 0 };
        let (mut listed, mut start) = (Vec::new(), 0);
        loop {
            let page = target.call(&ListEntries { kinds, start });
            let page = page.map_err(|f| refused(f, "unable to list entries"))?;
            // A page without new entries would be requested forever.
            let more = !page.entries.is_empty() && page.next != start;
            listed.extend(page.entries.iter().map(Listed::from));
            start = page.next;
            if start == -1 || !more {
                break;
            }
        }
        output::show(json, &EntryList(listed));
        Ok(())
    }
}

impl From<&Entry> for Listed {
    fn from(entry: &Entry) -> Self {
        let (id, owner, creator) = (entry.id.0, entry.owner.0, entry.creator.0);
        Listed { name: entry.name.to_string(), id, owner, creator }
    }
}

impl fmt::Display for EntryList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<25} {:>6} {:>6} {:>7}", "Name", "ID", "Owner", "Creator")?;
        for Listed { name, id, owner, creator } in &self.0 {
            writeln!(f, "{name:<25} {id:>6} {owner:>6} {creator:>7} ")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_form_that_scripts_parse() {
        let alice = Listed { name: "alice".into(), id: 2, owner: -204, creator: 1 };
        assert_eq!(
            EntryList(vec![alice]).to_string(),
            "Name                          ID  Owner Creator\nalice                          2   -204       1 \n"
        );
    }
}
