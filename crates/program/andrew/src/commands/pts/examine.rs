//! `andrew pts examine`: entries of users and groups.

use super::access;
use super::names::{self, UserOrGroup};
use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::pt::{Entry, ListEntry};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts examine`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The flags are five letters: who may see the entry (S anyone, s members), what it owns (O), its
memberships (M, m), add members (A, a), and remove them (r).

Examples:
  andrew pts examine alice
  andrew pts examine -206")]
pub struct Args {
    /// Users or groups, by name or number
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The same, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1.., allow_negative_numbers = true)]
    nameorid: Vec<String>,
}

/// A user or group in the output.
#[derive(Serialize)]
struct Shown {
    name: String,
    id: i32,
    owner: String,
    creator: String,
    membership: i32,
    flags: String,
    group_quota: i32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct EntryDetails(Vec<Shown>);

impl Args {
    /// Prints the entries.
    ///
    /// # Errors
    /// A user or group that does not exist, or may not be seen.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let wanted = names::given(self.bare, self.nameorid, "examine", "the name of a user or group")?;
        let mut answer = Vec::new();
        let outcome = names::find_all(target, &wanted).and_then(|parties| {
            target.for_each(parties, |target, party| {
                answer.push(examine(target, &party)?);
                Ok(())
            })
        });
        output::show(json, &EntryDetails(answer));
        outcome
    }
}

fn examine(target: &mut Target, party: &UserOrGroup) -> CommandResult<Shown> {
    let found = target.call(&ListEntry { id: party.id });
    let what = format!("unable to find entry for (id: {})", party.id);
    let entry = found.map_err(|failure| refused(failure, &what))?.entry;
    let [owner, creator] = names::of(target, &[entry.owner, entry.creator])?
        .try_into()
        .unwrap_or_else(|_| [entry.owner, entry.creator].map(|id| id.to_string()));
    Ok(shown(&entry, owner, creator))
}

fn shown(entry: &Entry, owner: String, creator: String) -> Shown {
    Shown {
        name: entry.name.to_string(),
        id: entry.id.0,
        owner,
        creator,
        membership: entry.count,
        flags: access::letters(entry.flags),
        group_quota: entry.group_quota,
    }
}

impl fmt::Display for EntryDetails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Shown { name, id, owner, creator, membership, flags, group_quota } in &self.0 {
            writeln!(f, "Name: {name}, id: {id}, owner: {owner}, creator: {creator},")?;
            writeln!(f, "  membership: {membership}, flags: {flags}, group quota: {group_quota}.")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_wire::ids::ViceId;
    use afs_wire::pt::NameChars;

    #[test]
    fn lines_have_the_form_that_scripts_parse() {
        let entry = Entry {
            flags: 0x80,
            id: ViceId(2),
            group_quota: 20,
            count: 3,
            name: NameChars::truncated(b"alice"),
            ..Entry::default()
        };
        let answer = EntryDetails(vec![shown(&entry, "system:administrators".into(), "admin".into())]);
        assert_eq!(
            answer.to_string(),
            "Name: alice, id: 2, owner: system:administrators, creator: admin,\n  membership: 3, flags: S----, group quota: 20.\n"
        );
    }
}
