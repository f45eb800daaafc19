//! Translation between names and ids of users and groups.

use super::route::{Target, refused};
use crate::error::{CommandError, CommandResult};
use afs_wire::ids::ViceId;
use afs_wire::pt::{IdToName, Ids, NameChars, NameText, NameToId, Names};

/// Names or ids in one call.
const BATCH: usize = 100;

/// A user or group given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserOrGroup {
    /// As it was given.
    pub(crate) text: String,
    /// Its id.
    pub(crate) id: ViceId,
}

/// A name as an argument of a call.
pub(crate) fn text(name: &str) -> CommandResult<NameText> {
    NameText::new(name.to_ascii_lowercase()).map_err(|_| bad_name(name))
}

fn bad_name(name: &str) -> CommandError {
    CommandError::usage(format!(
        "pts: '{name}' is not the name of a user or group; use 1 to 63 bytes, OWNER:NAME for a group"
    ))
}

/// The users and groups given, in their order. A number is taken for an id, whether or not an entry has it.
pub(crate) fn find_all(target: &mut Target, wanted: &[String]) -> CommandResult<Vec<UserOrGroup>> {
    let mut found = Vec::with_capacity(wanted.len());
    for batch in wanted.chunks(BATCH) {
        let names = batch.iter().map(|name| {
            let name = name.to_ascii_lowercase();
            NameChars::new(name.as_bytes()).map_err(|_| bad_name(&name))
        });
        let names = Names::first_of(names.collect::<CommandResult<Vec<_>>>()?);
        let reply = target.call(&NameToId { names });
        let ids = reply.map_err(|f| refused(f, "unable to look up names"))?.ids;
        for (text, id) in batch.iter().zip(ids) {
            found.push(party(text, id)?);
        }
    }
    Ok(found)
}

/// The one user or group given.
pub(crate) fn find(target: &mut Target, wanted: &str) -> CommandResult<UserOrGroup> {
    let found = find_all(target, &[wanted.to_owned()])?.pop();
    found.ok_or_else(|| CommandError::failed("pts: the server's reply has no id"))
}

/// The user or group for a text, given the id that the server has for it as a name.
fn party(text: &str, id: ViceId) -> CommandResult<UserOrGroup> {
    let anonymous = ViceId::ANONYMOUS.well_known_name().unwrap_or_default();
    let known = id != ViceId::ANONYMOUS || text.eq_ignore_ascii_case(anonymous);
    let number = text.parse().ok().map(ViceId);
    match Some(id).filter(|_| known).or(number) {
        Some(id) => Ok(UserOrGroup { text: text.to_owned(), id }),
        None => Err(CommandError::usage(format!(
            "pts: User or group doesn't exist so couldn't look up id for {text}; `andrew pts listentries` shows those there are"
        ))),
    }
}

/// Names of ids, in their order; the number if an id has no name.
pub(crate) fn of(target: &mut Target, ids: &[ViceId]) -> CommandResult<Vec<String>> {
    let mut names = Vec::with_capacity(ids.len());
    for batch in ids.chunks(BATCH) {
        let reply = target.call(&IdToName { ids: Ids::first_of(batch.iter().copied()) });
        let reply = reply.map_err(|f| refused(f, "unable to look up ids"))?;
        if reply.names.len() != batch.len() {
            return Err(CommandError::failed("pts: the server's reply does not have a name for every id"));
        }
        names.extend(reply.names.iter().map(ToString::to_string));
    }
    Ok(names)
}

/// The arguments of the command line, positional or with the option; at least one.
pub(super) fn given(
    bare: Vec<String>,
    option: Vec<String>,
    command: &str,
    what: &str,
) -> CommandResult<Vec<String>> {
    let all = [bare, option].concat();
    if all.is_empty() {
        return Err(CommandError::usage(format!(
            "pts: {command} needs {what}; see `andrew pts {command} --help`"
        )));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_numbers() {
        let id = |text: &str, found| party(text, ViceId(found)).map(|party| party.id.0);
        assert_eq!(id("alice", 2), Ok(2));
        assert_eq!(id("-206", 32766), Ok(-206));
        assert_eq!(id("anonymous", 32766), Ok(32766));
        assert_eq!(id("10.0.0.1", 7), Ok(7));
        assert_eq!(id("nobody", 32766).unwrap_err().status, CommandError::USAGE);
    }
}
