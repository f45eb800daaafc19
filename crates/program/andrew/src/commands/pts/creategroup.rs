//! `andrew pts creategroup`: creates groups.

use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{EntryKind, INewEntry, NewEntry};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts creategroup`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A group's name begins with its owner's and a colon; only administrators can create groups without a colon.

Examples:
  andrew pts creategroup alice:friends -owner alice
  andrew pts creategroup staff")]
pub struct Args {
    /// Names
    #[arg(value_name = "NAME")]
    bare: Vec<String>,
    /// Names, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1..)]
    name: Vec<String>,
    /// Owner of the groups [default: you]
    #[arg(long, value_name = "OWNER", allow_negative_numbers = true)]
    owner: Option<String>,
    /// Negative numbers of the groups, in order [default: the next free ones]
    #[arg(
        long, value_name = "ID", num_args = 1.., allow_negative_numbers = true,
        value_parser = clap::value_parser!(i32).range(..0)
    )]
    id: Vec<i32>,
}

#[derive(Serialize)]
struct Group {
    name: String,
    id: i32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct CreatedGroups(Vec<Group>);

impl Args {
    /// Creates the groups.
    ///
    /// # Errors
    /// A name or number that is in use or invalid, an owner that does not exist, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let names = names::given(self.bare, self.name, "creategroup", "the name of a group")?;
        if self.id.len() > names.len() {
            return Err(CommandError::usage("pts: there are more ids than names; give one for each"));
        }
        let owner = self.owner.map(|owner| names::find(target, &owner)).transpose()?;
        let owner = owner.map_or(ViceId(0), |owner| owner.id);
        let ids = self.id.into_iter().map(Some).chain(std::iter::repeat(None));
        let mut made = Vec::new();
        let outcome = target.for_each(names.into_iter().zip(ids), |target, (name, id)| {
            made.push(create(target, name, id, owner)?);
            Ok(())
        });
        output::show(json, &CreatedGroups(made));
        outcome
    }
}

fn create(target: &mut Target, name: String, id: Option<i32>, owner: ViceId) -> CommandResult<Group> {
    let text = names::text(&name)?;
    let made = match id {
        Some(id) => target.call(&INewEntry { name: text, id: ViceId(id), owner }).map(|()| id),
        None => target.call(&NewEntry { name: text, kind: EntryKind::GROUP, owner }).map(|reply| reply.id.0),
    };
    match made {
        Ok(id) => Ok(Group { name, id }),
        Err(failure) => Err(refused(failure, &format!("unable to create group {name}"))),
    }
}

impl fmt::Display for CreatedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Group { name, id }| writeln!(f, "group {name} has id {id}"))
    }
}
