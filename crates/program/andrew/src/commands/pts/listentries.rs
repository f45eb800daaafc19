//! `andrew pts listentries`: all users or groups.

use super::listed::Listed;
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

/// The index after the last page.
const END: i32 = -1;

#[derive(Serialize)]
struct ListedEntry {
    name: String,
    id: i32,
    owner: i32,
    creator: i32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct EntryList(Vec<ListedEntry>);

impl Args {
    /// Prints all entries; for administrators.
    ///
    /// # Errors
    /// The server's refusal, or a list that does not end.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let users = if self.users || !self.groups { list_kinds::USERS } else { 0 };
        let kinds = users | if self.groups { list_kinds::GROUPS } else { 0 };
        output::show(json, &EntryList(all(target, kinds)?));
        Ok(())
    }
}

fn all(target: &mut Target, kinds: u32) -> CommandResult<Vec<ListedEntry>> {
    let (mut all, mut listed, mut start) = (Vec::new(), Listed::default(), 0);
    loop {
        let page = target.call(&ListEntries { kinds, start });
        let page = page.map_err(|f| refused(f, "unable to list entries"))?;
        all.extend(page.entries.iter().filter(|entry| listed.insert(entry.id)).map(ListedEntry::from));
        listed.end_part(page.next == END, target)?;
        if page.next == END {
            return Ok(all);
        }
        start = page.next;
    }
}

impl From<&Entry> for ListedEntry {
    fn from(entry: &Entry) -> Self {
        let (id, owner, creator) = (entry.id.0, entry.owner.0, entry.creator.0);
        ListedEntry { name: entry.name.to_string(), id, owner, creator }
    }
}

impl fmt::Display for EntryList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<25} {:>6} {:>6} {:>7}", "Name", "ID", "Owner", "Creator")?;
        for ListedEntry { name, id, owner, creator } in &self.0 {
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
        let alice = ListedEntry { name: "alice".into(), id: 2, owner: -204, creator: 1 };
        assert_eq!(
            EntryList(vec![alice]).to_string(),
            "Name                          ID  Owner Creator\nalice                          2   -204       1 \n"
        );
    }
}
