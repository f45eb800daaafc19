//! `andrew pts rename`: renames a user or group.

use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::ChangeEntry;
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts rename`.
#[derive(clap::Args, Debug)]
#[command(
    override_usage = "andrew pts rename [OPTIONS] OLDNAME NEWNAME",
    after_help = "\
The groups that a user owns keep their names when the user is renamed; rename them too.

Examples:
  andrew pts rename alice alicia
  andrew pts rename alice:friends alicia:friends"
)]
pub struct Args {
    /// The old name or number, and the new name
    #[arg(value_name = "OLDNAME NEWNAME", num_args = 0..=2, allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The old name or number, as OpenAFS's pts takes it
    #[arg(long, value_name = "OLDNAME", allow_negative_numbers = true)]
    oldname: Option<String>,
    /// The new name, as OpenAFS's pts takes it
    #[arg(long, value_name = "NEWNAME", allow_negative_numbers = true)]
    newname: Option<String>,
}

#[derive(Serialize)]
struct Renamed {
    id: i32,
    newname: String,
}

impl Args {
    /// Renames the entry.
    ///
    /// # Errors
    /// A user or group that does not exist, a name that is in use or invalid, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let mut bare = self.bare.into_iter();
        let missing =
            || CommandError::usage("pts: rename needs an old and a new name; see `andrew pts rename --help`");
        let oldname = self.oldname.or_else(|| bare.next()).ok_or_else(missing)?;
        let newname = self.newname.or_else(|| bare.next()).ok_or_else(missing)?;
        if bare.next().is_some() {
            return Err(missing());
        }
        let party = names::find(target, &oldname)?;
        let name = names::text(&newname)?;
        let change = ChangeEntry { id: party.id, name, owner: ViceId(0), new_id: ViceId(0) };
        let what = format!("unable to change name of {} to {newname}", party.text);
        target.call(&change).map_err(|failure| refused(failure, &what))?;
        output::show(json, &Renamed { id: party.id.0, newname });
        Ok(())
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for Renamed {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
