//! `andrew pts createuser`: creates users.

use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{EntryKind, INewEntry, NewEntry};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts createuser`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
A machine can be a user too, named by its IP address; 10.1.2.0 means a whole network.

Examples:
  andrew pts createuser alice
  andrew pts createuser -name alice bob -id 1001 1002")]
pub struct Args {
    /// Names
    #[arg(value_name = "NAME")]
    bare: Vec<String>,
    /// Names, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1..)]
    name: Vec<String>,
    /// Numbers of the users, in order [default: the next free ones]
    #[arg(long, value_name = "ID", num_args = 1.., value_parser = clap::value_parser!(i32).range(1..))]
    id: Vec<i32>,
}

#[derive(Serialize)]
struct User {
    name: String,
    id: i32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct CreatedUsers(Vec<User>);

impl Args {
    /// Creates the users.
    ///
    /// # Errors
    /// A name or number that is in use or invalid, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let names = names::given(self.bare, self.name, "createuser", "the name of a user")?;
        if self.id.len() > names.len() {
            return Err(CommandError::usage("pts: there are more ids than names; give one for each"));
        }
        let ids = self.id.into_iter().map(Some).chain(std::iter::repeat(None));
        let mut made = Vec::new();
        let outcome = target.for_each(names.into_iter().zip(ids), |target, (name, id)| {
            made.push(create(target, name, id)?);
            Ok(())
        });
        output::show(json, &CreatedUsers(made));
        outcome
    }
}

fn create(target: &mut Target, name: String, id: Option<i32>) -> CommandResult<User> {
    let (text, owner) = (names::text(&name)?, ViceId(0));
    let made = match id {
        Some(id) => target.call(&INewEntry { name: text, id: ViceId(id), owner }).map(|()| id),
        None => target.call(&NewEntry { name: text, kind: EntryKind::USER, owner }).map(|reply| reply.id.0),
    };
    match made {
        Ok(id) => Ok(User { name, id }),
        Err(failure) => Err(refused(failure, &format!("unable to create user {name}"))),
    }
}

impl fmt::Display for CreatedUsers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|User { name, id }| writeln!(f, "User {name} has id {id}"))
    }
}
