//! `andrew pts membership`: members of groups, and groups of users.

use super::listed::Listed;
use super::names::{self, UserOrGroup};
use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{ListElements, ListSuperGroups};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts membership`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  andrew pts membership alice
  andrew pts membership alice:friends --expandgroups")]
pub struct Args {
    /// Users or groups, by name or number
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The same, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1.., allow_negative_numbers = true)]
    nameorid: Vec<String>,
    /// Show the groups that a group is in, instead of its members
    #[arg(long)]
    supergroups: bool,
    /// Include memberships through groups in groups
    #[arg(long)]
    expandgroups: bool,
}

#[derive(Serialize)]
struct Membership {
    name: String,
    id: i32,
    /// Whether `names` are its members; otherwise they are its groups.
    members: bool,
    names: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct MembershipLists(Vec<Membership>);

impl Args {
    /// Prints members and memberships.
    ///
    /// # Errors
    /// A user or group that does not exist, or whose memberships may not be seen; a list that does not end.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let wanted = names::given(self.bare, self.nameorid, "membership", "the name of a user or group")?;
        let mut answer = Vec::new();
        let outcome = names::find_all(target, &wanted).and_then(|parties| {
            target.for_each(parties, |target, party| {
                answer.push(membership(target, &party, self.supergroups, self.expandgroups)?);
                Ok(())
            })
        });
        output::show(json, &MembershipLists(answer));
        outcome
    }
}

fn membership(target: &mut Target, party: &UserOrGroup, up: bool, expand: bool) -> CommandResult<Membership> {
    let members = party.id.is_group() && !up;
    let mut found = Listed::default();
    let mut fresh = vec![party.id];
    while let Some(id) = fresh.pop() {
        let more = step(target, id, members, &party.text)?;
        fresh.extend(more.into_iter().filter(|id| found.insert(*id) && expand && id.is_group()));
        // Groups in groups may be without end, the members of one group are not.
        found.end_part(true, target)?;
    }
    let ids = found.into_ids();
    let names = names::of(target, &ids)?;
    let name = names::of(target, &[party.id])?.pop().unwrap_or_default();
    Ok(Membership { name, id: party.id.0, members, names })
}

/// One level: the members of a group, or the groups of a user or group.
fn step(target: &mut Target, id: ViceId, members: bool, of: &str) -> CommandResult<Vec<ViceId>> {
    let reply = if id.is_group() && !members {
        target.call(&ListSuperGroups { id })
    } else {
        target.call(&ListElements { id })
    };
    let reply = reply.map_err(|f| refused(f, &format!("unable to get membership of {of} (id: {id})")))?;
    Ok(reply.ids.into_vec())
}

impl fmt::Display for MembershipLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Membership { name, id, members, names } in &self.0 {
            if *members {
                writeln!(f, "Members of {name} (id: {id}) are:")?;
            } else if *id < 0 {
                writeln!(f, "Group {name} (id: {id}) is a member of:")?;
            } else {
                writeln!(f, "Groups {name} (id: {id}) is a member of:")?;
            }
            names.iter().try_for_each(|name| writeln!(f, "  {name}"))?;
        }
        Ok(())
    }
}
