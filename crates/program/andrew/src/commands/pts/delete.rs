//! `andrew pts delete`: removes users and groups.

use super::control_call::Failure;
use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::error::AbortCode;
use afs_wire::ids::ViceId;
use afs_wire::pt::{Delete, ListElements};
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

/// Whether a deletion was refused because it would leave no administrator.
fn is_last_administrator(target: &mut Target, failure: &Failure, id: ViceId) -> bool {
    let members = ListElements { id: ViceId::ADMINISTRATORS };
    matches!(failure, Failure::Code(AbortCode::PRPERM))
        && target.call(&members).is_ok_and(|reply| reply.ids.iter().eq([&id]))
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
                if let Err(failure) = target.call(&Delete { id: party.id }) {
                    let what = format!("unable to delete user {}", party.text);
                    return Err(match is_last_administrator(target, &failure, party.id) {
                        true => CommandError::failed(format!(
                            "pts: {what}: nobody else is in system:administrators; add another user first: andrew pts adduser NAME system:administrators"
                        )),
                        false => refused(failure, &what),
                    });
                }
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
