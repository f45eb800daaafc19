//! `andrew fs access`: the rights of a user or group on a path, and the entries and rules that give or deny them.

use super::attribute;
use super::memberships::{self, NamedSubject, ProtectionClient};
use super::path_cell;
use super::paths::Paths;
use crate::commands::pts::route::RouteOptions;
use crate::error::{CommandError, CommandResult};
use crate::output;
use afs_server::access::{Object, Reason, Source, explain};
use afs_wire::acl::{Acl, NamedAcl};
use afs_wire::fs::FileKind;
use afs_wire::ids::{Mode, Rights, ViceId};
use rustix::io::Errno;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Options of `andrew fs access`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The entry that grants a right is shown with the path of memberships to it: `staff (alice -> team -> staff)`. Rights
that depend on the user's machine are not shown, nor the rights of the owner of a file.

Examples:
  andrew fs access ~/afs/shared --user alice
  andrew fs access ~/afs/shared")]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
    /// User or group, by name or number [default: you]
    #[arg(long, value_name = "NAME", allow_negative_numbers = true)]
    user: Option<String>,
    #[command(flatten)]
    route: RouteOptions,
}

#[derive(Serialize)]
struct Explained {
    #[serde(serialize_with = "crate::output::path")]
    path: PathBuf,
    user: String,
    id: i32,
    rights: String,
    reasons: Vec<Explanation>,
}

/// One right, and why it is given or not.
#[derive(Serialize)]
struct Explanation {
    right: String,
    had: bool,
    given_by: Vec<Cause>,
    taken_by: Vec<Cause>,
}

/// Cause of a right: an entry of the list, or a rule.
#[derive(Clone, Serialize)]
struct Cause {
    /// The name in the list, or the rule.
    name: String,
    /// Path of memberships from the user to that name; empty if unknown.
    through: Vec<String>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct AccessReport(Vec<Explained>);

impl Args {
    /// Prints the rights with their reasons.
    ///
    /// # Errors
    /// The first path without an access list, or whose list this user may not read; a user that does not exist.
    pub fn run(self, json: bool) -> CommandResult {
        let one = |path: PathBuf| of_path(&self.route, self.user.as_deref(), path);
        let all = self.paths.all().into_iter().map(one).collect::<CommandResult<_>>()?;
        output::show(json, &AccessReport(all));
        Ok(())
    }
}

/// Rights of a named user, or of the user of the command, on a path, from the cell of the path's mount.
fn of_path(route: &RouteOptions, user: Option<&str>, path: PathBuf) -> CommandResult<Explained> {
    let place = path_cell::of(&path)?;
    let own = if user.is_some() { None } else { memberships::own_name(place.as_ref())? };
    let mut protection = ProtectionClient::new(route.clone().or_of(place.as_ref())?);
    let subject = match user {
        Some(user) => protection.find(Some(user))?,
        None => protection.find_own(own.as_ref())?,
    };
    let unseen = attribute::try_get(&path, "afs.acl").is_err_and(|error| error == Errno::ACCESS);
    match (unseen, user) {
        (false, _) => explained(&mut protection, &subject, path),
        (true, None) => Ok(Explained {
            path,
            user: subject.name.clone(),
            id: subject.subject.id().0,
            rights: String::new(),
            reasons: Vec::new(),
        }),
        (true, Some(_)) => Err(CommandError::failed(format!(
            "fs: the access list of '{}' is shown only to users with the right to look there (l), such as the cell's administrators",
            path.display()
        ))),
    }
}

fn explained(
    protection: &mut ProtectionClient,
    subject: &NamedSubject,
    path: PathBuf,
) -> CommandResult<Explained> {
    let text = attribute::get_text(&path, "afs.acl")?;
    let (acl, names) = protection.resolve(&named(&text)?)?;
    let kind = kind(&path)?;
    let reasons = reasons(subject, &acl, kind);
    let wanted: Vec<ViceId> = reasons.iter().flat_map(entries).collect();
    let paths = protection.paths(subject, &wanted)?;
    let cause = |source: &Source| match source {
        Source::Entry(id) | Source::HostEntry(id) => {
            let name = names.iter().find(|(known, _)| known == id).map(|(_, name)| name.clone());
            Cause { name: name.unwrap_or_else(|| id.to_string()), through: paths.to(*id) }
        }
        Source::Administrator => {
            Cause { name: "being an administrator".into(), through: paths.to(ViceId::ADMINISTRATORS) }
        }
        Source::Owner => rule("owning the file"),
        Source::NotOwner => rule("not owning the file"),
    };
    let explanation = |reason: &Reason| Explanation {
        right: reason.right.to_string(),
        had: reason.had,
        given_by: reason.given_by.iter().map(cause).collect(),
        taken_by: reason.taken_by.iter().map(cause).collect(),
    };
    Ok(Explained {
        path,
        user: subject.name.clone(),
        id: subject.subject.id().0,
        rights: sum(&reasons).to_string(),
        reasons: reasons.iter().map(explanation).collect(),
    })
}

/// The rights that follow from the list alone, in the order of their letters; rights without a fixed meaning only if
/// they are given.
fn reasons(subject: &NamedSubject, acl: &Acl, kind: FileKind) -> Vec<Reason> {
    let object = Object { kind, owner: ViceId(0), mode: Mode(0), acl, volume_owner: ViceId(0) };
    let mut reasons = explain(&subject.subject, &object);
    let is_told = |reason: &Reason| {
        let meant = Rights::ALL.contains(reason.right);
        // The list does not show whether the user owns a file.
        let told = kind == FileKind::Directory || reason.right != Rights::ADMINISTER;
        told && (meant || reason.had)
    };
    reasons.retain(is_told);
    let letter = |reason: &Reason| ORDER.find(&reason.right.to_string());
    reasons.sort_by_key(letter);
    reasons
}

/// Letters of the rights in the order in which they are shown.
const ORDER: &str = "rlidwkaABCDEFGH";

fn sum(reasons: &[Reason]) -> Rights {
    reasons.iter().filter(|reason| reason.had).fold(Rights::NONE, |rights, reason| rights | reason.right)
}

fn entries(reason: &Reason) -> Vec<ViceId> {
    let id = |source: &Source| match source {
        Source::Entry(id) | Source::HostEntry(id) => Some(*id),
        Source::Administrator => Some(ViceId::ADMINISTRATORS),
        Source::Owner | Source::NotOwner => None,
    };
    reason.given_by.iter().chain(&reason.taken_by).filter_map(id).collect()
}

fn rule(name: &str) -> Cause {
    Cause { name: name.into(), through: Vec::new() }
}

fn named(text: &str) -> CommandResult<NamedAcl> {
    let wrong = |error| CommandError::failed(format!("fs: the server sent {error}"));
    NamedAcl::from_text(text.as_bytes()).map_err(wrong)
}

fn kind(path: &Path) -> CommandResult<FileKind> {
    let found = std::fs::metadata(path)
        .map_err(|error| CommandError::failed(format!("fs:'{}': {error}", path.display())))?;
    Ok(if found.is_dir() { FileKind::Directory } else { FileKind::File })
}

impl fmt::Display for AccessReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Explained { path, user, rights, reasons, .. } in &self.0 {
            let rights = if rights.is_empty() { "no rights" } else { rights };
            writeln!(f, "{user} has {rights} on {}", path.display())?;
            if reasons.is_empty() {
                writeln!(f, "  no right to look there (l): the access list is not shown")?;
            }
            reasons.iter().try_for_each(|reason| writeln!(f, "  {reason}"))?;
        }
        Ok(())
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let may = if self.had { "may" } else { "may not" };
        write!(f, "{} {may} {}", self.right, meaning(&self.right))?;
        match (self.given_by.is_empty(), self.taken_by.is_empty()) {
            (true, true) => f.write_str(": no entry gives it"),
            (false, true) => write!(f, ": from {}", list(&self.given_by)),
            (true, false) => write!(f, ": denied by {}", list(&self.taken_by)),
            (false, false) => {
                write!(f, ": from {}, denied by {}", list(&self.given_by), list(&self.taken_by))
            }
        }
    }
}

fn meaning(letter: &str) -> &'static str {
    match letter {
        "r" => "read files",
        "l" => "look at names and status",
        "i" => "make files and directories",
        "d" => "remove files and directories",
        "w" => "write files",
        "k" => "lock files",
        "a" => "change the access list",
        _ => "do what this site says",
    }
}

fn list(causes: &[Cause]) -> String {
    causes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.through.len() > 1 { write!(f, " ({})", self.through.join(" -> ")) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use afs_server::Subject;

    const STAFF: ViceId = ViceId(-300);

    fn subject() -> NamedSubject {
        let groups = [STAFF, ViceId::ANYUSER, ViceId::AUTHUSER];
        NamedSubject { name: "alice".into(), subject: Subject::new(ViceId(5), groups), without: Vec::new() }
    }

    fn acl() -> Acl {
        let positive = vec![(STAFF, Rights(0x0100_003f)), (ViceId::ANYUSER, Rights::LOOKUP)];
        Acl::new(positive, vec![(ViceId(5), Rights::WRITE)]).unwrap()
    }

    #[test]
    fn every_right_with_a_meaning_is_explained_in_order() {
        let letters = |kind| {
            let reasons = reasons(&subject(), &acl(), kind);
            let text: String = reasons.iter().map(|reason| reason.right.to_string()).collect();
            (text, sum(&reasons).to_string())
        };
        assert_eq!(letters(FileKind::Directory), ("rlidwkaA".into(), "rlidkA".into()));
        assert_eq!(letters(FileKind::File), ("rlidwkA".into(), "rlidkA".into()));
    }

    #[test]
    fn reasons_are_sentences() {
        let cause = |name: &str, through: &[&str]| Cause {
            name: name.into(),
            through: through.iter().map(ToString::to_string).collect(),
        };
        let explained = |right: &str, had, given_by, taken_by| {
            Explanation { right: right.into(), had, given_by, taken_by }.to_string()
        };
        let staff = || cause("staff", &["alice", "team", "staff"]);
        let anyuser = || cause("system:anyuser", &["system:anyuser"]);
        assert_eq!(
            explained("r", true, vec![staff(), anyuser()], vec![]),
            "r may read files: from staff (alice -> team -> staff), system:anyuser"
        );
        assert_eq!(
            explained("w", false, vec![staff()], vec![cause("alice", &["alice"])]),
            "w may not write files: from staff (alice -> team -> staff), denied by alice"
        );
        assert_eq!(
            explained("a", false, vec![], vec![]),
            "a may not change the access list: no entry gives it"
        );
    }
}
