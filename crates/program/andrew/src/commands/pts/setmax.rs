//! `andrew pts setmax`: sets the largest user and group ids.

use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{EntryKind, SetMax};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts setmax`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The next user gets the number after the one given, the next group the one below.

Examples:
  andrew pts setmax -user 1000
  andrew pts setmax -group -1000")]
pub struct Args {
    /// For groups; negative
    #[arg(long, value_name = "ID", allow_negative_numbers = true, value_parser = clap::value_parser!(i32).range(..=0))]
    group: Option<i32>,
    /// For users
    #[arg(long, value_name = "ID", value_parser = clap::value_parser!(i32).range(0..))]
    user: Option<i32>,
}

#[derive(Serialize)]
struct MaxIdsSet {
    user: Option<i32>,
    group: Option<i32>,
}

impl Args {
    /// Sets the counters given.
    ///
    /// # Errors
    /// The server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let Args { group, user } = self;
        if group.is_none() && user.is_none() {
            return Err(CommandError::usage("pts: setmax needs a number; give -user, -group, or both"));
        }
        for (id, kind) in [(group, EntryKind::GROUP), (user, EntryKind::USER)] {
            let Some(id) = id.map(ViceId) else { continue };
            let outcome = target.call(&SetMax { id, kind });
            outcome.map_err(|f| refused(f, &format!("unable to set the largest id to {id}")))?;
        }
        output::show(json, &MaxIdsSet { user, group });
        Ok(())
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for MaxIdsSet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
