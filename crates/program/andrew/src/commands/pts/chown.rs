//! `andrew pts chown`: changes the owner of a group.

use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{ChangeEntry, NameText};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts chown`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew pts chown [OPTIONS] NAME OWNER",
    after_help = "\
The group's name changes with its owner: the part before its colon becomes the name of the new owner.

Examples:
  andrew pts chown alice:friends bob
  andrew pts chown -name alice:friends -owner bob"
)]
pub struct Args {
    /// The group and its new owner, by name or number
    #[arg(value_name = "NAME OWNER", num_args = 0..=2, allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The group, as OpenAFS's pts takes it
    #[arg(long, value_name = "NAME", allow_negative_numbers = true)]
    name: Option<String>,
    /// Its new owner, as OpenAFS's pts takes it
    #[arg(long, value_name = "OWNER", allow_negative_numbers = true)]
    owner: Option<String>,
}

#[derive(Serialize)]
struct OwnerChange {
    id: i32,
    owner: String,
}

impl Args {
    /// Changes the owner.
    ///
    /// # Errors
    /// A group or owner that does not exist, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let mut bare = self.bare.into_iter();
        let missing =
            || CommandError::usage("pts: chown needs a group and an owner; see `andrew pts chown --help`");
        let name = self.name.or_else(|| bare.next()).ok_or_else(missing)?;
        let owner = self.owner.or_else(|| bare.next()).ok_or_else(missing)?;
        if bare.next().is_some() {
            return Err(missing());
        }
        let party = names::find(target, &name)?;
        let to = names::find(target, &owner)?.id;
        let change = ChangeEntry { id: party.id, name: NameText::default(), owner: to, new_id: ViceId(0) };
        let what = format!("unable to change owner of {} to {owner}", party.text);
        target.call(&change).map_err(|failure| refused(failure, &what))?;
        output::show(json, &OwnerChange { id: party.id.0, owner });
        Ok(())
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for OwnerChange {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
