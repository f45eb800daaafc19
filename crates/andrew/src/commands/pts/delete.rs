//! `andrew pts delete`: removes users and groups.

use super::names;
use super::route::{Target, refused};
use crate::error::CommandResult;
use crate::output;
use afs_wire::pt::Delete;
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts delete`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The groups that the user owned remain, without an owner; `andrew pts listowned -orphans` shows them.

Examples:
  andrew pts delete alice:friends
  andrew pts delete -nameorid alice bob")]
pub struct Args {
    /// Users or groups, by name or number
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The same, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1.., allow_negative_numbers = true)]
    nameorid: Vec<String>,
}

#[derive(Serialize)]
struct Deleted {
    deleted: Vec<i32>,
}

impl Args {
    /// Removes the users and groups.
    ///
    /// # Errors
    /// A user or group that does not exist, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let wanted = names::given(self.bare, self.nameorid, "delete", "the name of a user or group")?;
        let mut deleted = Vec::new();
        let outcome = names::find_all(target, &wanted).and_then(|parties| {
            target.for_each(parties, |target, party| {
                let outcome = target.call(&Delete { id: party.id });
                outcome.map_err(|f| refused(f, &format!("unable to delete user {}", party.text)))?;
                deleted.push(party.id.0);
                Ok(())
            })
        });
        output::show(json, &Deleted { deleted });
        outcome
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for Deleted {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
