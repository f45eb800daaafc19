//! `andrew pts setfields`: sets privacy flags and quotas of entries.

use super::access;
use super::names;
use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_wire::ids::ViceId;
use afs_wire::pt::{SetFieldsEntry, field_mask};
use serde::Serialize;
use std::fmt;

/// Options of `andrew pts setfields`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
ACCESS is five letters, or dashes in their places: who may see the entry (S anyone, s members),
what it owns (O), its memberships (M, m), add members (A, a), and remove them (r). New users have
S----, new groups S-M--.

Examples:
  andrew pts setfields alice:friends -access s-mar
  andrew pts setfields alice -groupquota 50")]
pub struct Args {
    /// Users or groups, by name or number
    #[arg(value_name = "NAME", allow_negative_numbers = true)]
    bare: Vec<String>,
    /// The same, as OpenAFS's pts takes them
    #[arg(long, value_name = "NAME", num_args = 1.., allow_negative_numbers = true)]
    nameorid: Vec<String>,
    /// Who may see and change the entry
    #[arg(long, value_name = "ACCESS", allow_hyphen_values = true)]
    access: Option<String>,
    /// How many more groups the user may create
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(0..))]
    groupquota: Option<i32>,
    /// Quota of foreign users; stored for OpenAFS's tools
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(i32).range(0..))]
    foreignquota: Option<i32>,
}

#[derive(Serialize)]
struct FieldsSet {
    changed: Vec<i32>,
}

impl Args {
    /// Sets the given fields.
    ///
    /// # Errors
    /// A user or group that does not exist, invalid flags, or the server's refusal.
    pub fn run(self, target: &mut Target, json: bool) -> CommandResult {
        let wanted = self.request()?;
        let named = names::given(self.bare, self.nameorid, "setfields", "the name of a user or group")?;
        let parties = names::find_all(target, &named)?;
        let mut changed = Vec::new();
        let outcome = target.for_each(parties, |target, party| {
            let outcome = target.call(&SetFieldsEntry { id: party.id, ..wanted.clone() });
            let what = format!("unable to set fields for {} (id: {})", party.text, party.id);
            outcome.map_err(|failure| refused(failure, &what))?;
            changed.push(party.id.0);
            Ok(())
        });
        output::show(json, &FieldsSet { changed });
        outcome
    }

    /// The request, without the id of an entry.
    fn request(&self) -> CommandResult<SetFieldsEntry> {
        let flags = self.access.as_deref().map(|letters| {
            access::bits(letters).ok_or_else(|| {
                CommandError::usage(format!(
                    "pts: '{letters}' is not a valid access; give five letters: S or s, O, M or m, A or a, r, with dashes for those left out"
                ))
            })
        });
        let flags = flags.transpose()?;
        let bit = |given: bool, bit: u32| if given { bit } else { 0 };
        let mask = bit(flags.is_some(), field_mask::ACCESS)
            | bit(self.groupquota.is_some(), field_mask::GROUP_QUOTA)
            | bit(self.foreignquota.is_some(), field_mask::USER_QUOTA);
        if mask == 0 {
            return Err(CommandError::usage(
                "pts: setfields needs something to set; give -access, -groupquota or -foreignquota",
            ));
        }
        Ok(SetFieldsEntry {
            id: ViceId(0),
            mask,
            flags: flags.unwrap_or(0),
            group_quota: self.groupquota.unwrap_or(0),
            user_quota: self.foreignquota.unwrap_or(0),
            spare1: 0,
            spare2: 0,
        })
    }
}

/// OpenAFS's pts prints nothing.
impl fmt::Display for FieldsSet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}
