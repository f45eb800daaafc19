//! `andrew pts listowned`: groups by owner.

use super::listed::Listed;
use super::names;
use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::ListOwned;
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts listowned`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  andrew pts listowned alice\n  andrew pts listowned -orphans")]
pub struct Args {
    /// Users or groups, by name or number
    #[arg(value_name = "NAME", allow_negative_numbers = true, conflicts_with = "orphans")]
    bare: Vec<String>,
    /// The same, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1.., allow_negative_numbers = true, conflicts_with = "orphans")]
    nameorid: Vec<String>,
    /// Show the groups whose owner no longer exists
    #[arg(long)]
    orphans: bool,
}

#[derive(Serialize)]
struct Owned {
    /// `None` for groups without an owner.
    owner: Option<String>,
    id: i32,
    groups: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct OwnedGroups(Vec<Owned>);

impl Args {
    /// Prints the groups of each owner.
    ///
    /// # Errors
    /// An owner who does not exist, or whose groups may not be seen; a list that does not end.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let mut answer = Vec::new();
        let outcome = if self.orphans {
            let groups = owned(target, ViceId(0), "nobody")?;
            answer.push(Owned { owner: None, id: 0, groups });
            Ok(())
        } else {
            let wanted = names::given(self.bare, self.nameorid, "listowned", "the name of a user or group")?;
            let parties = names::find_all(target, &wanted)?;
            target.for_each(parties, |target, party| {
                let owner = names::of(target, &[party.id])?.pop();
                let groups = owned(target, party.id, &party.text)?;
                answer.push(Owned { owner, id: party.id.0, groups });
                Ok(())
            })
        };
        output::show(json, &OwnedGroups(answer));
        outcome
    }
}

/// Names of all groups of an owner.
fn owned(target: &mut Target, owner: ViceId, name: &str) -> CommandResult<Vec<String>> {
    let (mut ids, mut listed, mut last) = (Vec::new(), Listed::default(), 0);
    loop {
        let what = format!("unable to get owner list for {name} (id: {owner})");
        let reply = target.call(&ListOwned { owner, last }).map_err(|f| refused(f, &what))?;
        ids.extend(reply.ids.iter().copied().filter(|id| listed.insert(*id)));
        last = reply.last;
        listed.end_part(last == 0, target)?;
        if last == 0 {
            return names::of(target, &ids);
        }
    }
}

impl fmt::Display for OwnedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Owned { owner, id, groups } in &self.0 {
            match owner {
                Some(owner) => writeln!(f, "Groups owned by {owner} (id: {id}) are:")?,
                None => writeln!(f, "Orphaned groups are:")?,
            }
            groups.iter().try_for_each(|group| writeln!(f, "  {group}"))?;
        }
        Ok(())
    }
}
