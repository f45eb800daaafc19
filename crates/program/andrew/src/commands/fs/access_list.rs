//! Access lists as text: parser of the form that servers exchange, and changes of entries (docs/protocol/volumes.md "6.
//! ACLs").

use super::attribute;
use crate::error::{CommandError, CommandResult};
use rustix::io::Errno;
use serde::Serialize;
use std::fmt::{self, Write};
use std::path::Path;

/// Letters of the rights with their bits, in the order in which they are shown.
const LETTERS: [(char, u32); 15] = [
    ('r', 1),
    ('l', 8),
    ('i', 4),
    ('d', 16),
    ('w', 2),
    ('k', 32),
    ('a', 64),
    ('A', 0x0100_0000),
    ('B', 0x0200_0000),
    ('C', 0x0400_0000),
    ('D', 0x0800_0000),
    ('E', 0x1000_0000),
    ('F', 0x2000_0000),
    ('G', 0x4000_0000),
    ('H', 0x8000_0000),
];

/// Most entries of a list, positive and negative together.
const ENTRIES_MAX: usize = 20;

/// An access list with names instead of ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AccessList {
    /// Entries that give rights.
    pub(super) normal: Vec<Entry>,
    /// Entries that deny rights.
    pub(super) negative: Vec<Entry>,
}

/// One line of an access list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    /// A user, a group, or the decimal id of one that has no name.
    pub(super) name: String,
    /// The rights, as letters.
    #[serde(serialize_with = "letters")]
    pub(super) rights: u32,
}

fn letters<S: serde::Serializer>(rights: &u32, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&show(*rights))
}

/// Rights as letters.
pub(super) fn show(rights: u32) -> String {
    LETTERS.iter().filter(|(_, bit)| rights & bit != 0).map(|(letter, _)| letter).collect()
}

/// Change of one entry's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Replaces the rights.
    Set(u32),
    /// Adds rights.
    Add(u32),
    /// Removes rights.
    Remove(u32),
}

impl Change {
    /// Parses `rl`, `write`, `none`, `=rl`, `+w`, `-d`.
    pub(super) fn parse(text: &str) -> CommandResult<Self> {
        let kind: fn(u32) -> Self = match text.as_bytes().first() {
            Some(b'+') => Self::Add,
            Some(b'-') => Self::Remove,
            _ => Self::Set,
        };
        let word = text.strip_prefix(['+', '-', '=']).unwrap_or(text);
        rights(word).map(kind).ok_or_else(|| {
            CommandError::usage(format!(
                "fs: Illegal rights '{text}'; give letters of rlidwka, or read, write, all or none"
            ))
        })
    }

    fn apply(self, rights: u32) -> u32 {
        match self {
            Self::Set(new) => new,
            Self::Add(more) => rights | more,
            Self::Remove(less) => rights & !less,
        }
    }
}

fn rights(word: &str) -> Option<u32> {
    match word {
        "none" => Some(0),
        "read" => Some(0x09),
        "write" => Some(0x3f),
        "all" => Some(0x7f),
        "" => None,
        letters => letters.chars().try_fold(0, |bits, c| {
            LETTERS.iter().find(|(letter, _)| *letter == c).map(|(_, bit)| bits | bit)
        }),
    }
}

impl AccessList {
    /// Parses the form that servers exchange: two counts, then one line for each entry: a name, a tab, and rights in
    /// decimal.
    pub(super) fn parse(text: &str) -> CommandResult<Self> {
        let wrong = || CommandError::failed("fs: the server sent an invalid access list");
        let mut lines = text.trim_end_matches('\0').lines();
        let mut count = || lines.next().and_then(|l| l.trim().parse::<usize>().ok()).ok_or_else(wrong);
        let (normal, negative) = (count()?, count()?);
        if normal.saturating_add(negative) > ENTRIES_MAX {
            return Err(wrong());
        }
        let mut entries = lines.by_ref().take(normal + negative).map(|line| {
            let (name, bits) = line.rsplit_once('\t').ok_or_else(wrong)?;
            let bits = bits.trim().parse::<i64>().map_err(|_| wrong())?;
            Ok(Entry { name: name.to_owned(), rights: bits as u32 })
        });
        let list = Self {
            normal: entries.by_ref().take(normal).collect::<CommandResult<_>>()?,
            negative: entries.collect::<CommandResult<_>>()?,
        };
        if list.normal.len() + list.negative.len() != normal + negative {
            return Err(wrong());
        }
        Ok(list)
    }

    /// Without the entries that are shown as numbers: of users and groups that were deleted.
    pub(super) fn without_numbers(&self) -> Self {
        let named = |list: &[Entry]| {
            list.iter().filter(|entry| entry.name.parse::<i64>().is_err()).cloned().collect::<Vec<_>>()
        };
        Self { normal: named(&self.normal), negative: named(&self.negative) }
    }

    /// Stores it as the list of a directory. A server may refuse the numbers of deleted users (one of another implementation, or where
    /// the list comes from another directory): they give nobody a right, and must not keep a list from being changed.
    pub(super) fn store(&self, directory: &Path) -> Result<(), Errno> {
        let set = |list: &Self| attribute::try_set(directory, "afs.acl", list.to_string().as_bytes());
        let named = self.without_numbers();
        match set(self) {
            Err(Errno::INVAL) if named != *self => set(&named),
            stored => stored,
        }
    }

    /// Changes the entry of `name`. An entry without rights is removed.
    pub(super) fn change(&mut self, name: &str, change: Change, negative: bool) -> CommandResult {
        let list = if negative { &mut self.negative } else { &mut self.normal };
        let at = list.iter().position(|e| e.name == name);
        let rights = change.apply(at.and_then(|at| list.get(at)).map_or(0, |e| e.rights));
        match at {
            Some(at) if rights == 0 => drop(list.remove(at)),
            Some(at) => list[at].rights = rights,
            None if rights == 0 => {}
            None => list.push(Entry { name: name.to_owned(), rights }),
        }
        if self.normal.len() + self.negative.len() > ENTRIES_MAX {
            return Err(CommandError::usage(format!(
                "fs: an access list holds at most {ENTRIES_MAX} entries"
            )));
        }
        Ok(())
    }
}

impl fmt::Display for AccessList {
    /// The form that servers exchange.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n", self.normal.len(), self.negative.len())?;
        for entry in self.normal.iter().chain(&self.negative) {
            writeln!(f, "{}\t{}", entry.name, entry.rights)?;
        }
        Ok(())
    }
}

/// Appends one half of a list as `fs listacl` shows it.
pub(super) fn show_half(out: &mut String, title: &str, entries: &[Entry]) {
    if entries.is_empty() {
        return;
    }
    let _ = writeln!(out, "{title}:");
    for entry in entries {
        let _ = writeln!(out, "  {} {}", entry.name, show(entry.rights));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "2\n1\nsystem:administrators\t127\nsystem:anyuser\t9\nbob\t2\n";

    #[test]
    fn text_goes_in_and_out() {
        let list = AccessList::parse(TEXT).unwrap();
        assert_eq!(list.to_string(), TEXT);
        assert_eq!(show(127), "rlidwka");
        assert_eq!(AccessList::parse("0\n0\n\0").unwrap(), AccessList::default());
    }

    #[test]
    fn damaged_text_is_an_error() {
        for text in ["", "1\n", "1\n0\n", "1\n0\nbob\n", "1\n0\nbob\tx\n", "21\n0\n", "x\n0\n", "-1\n0\n"] {
            assert!(AccessList::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn changes_add_remove_set_and_drop() {
        let mut list = AccessList::parse(TEXT).unwrap();
        for (name, change, negative) in [
            ("system:anyuser", "+w", false),
            ("system:administrators", "-a", false),
            ("alice", "write", false),
            ("bob", "none", true),
            ("nobody", "none", false),
        ] {
            list.change(name, Change::parse(change).unwrap(), negative).unwrap();
        }
        assert_eq!(list.to_string(), "3\n0\nsystem:administrators\t63\nsystem:anyuser\t11\nalice\t63\n");
    }

    #[test]
    fn wrong_rights_say_what_would_be_right() {
        let error = Change::parse("rwx").unwrap_err();
        assert_eq!(
            error.message,
            "fs: Illegal rights 'rwx'; give letters of rlidwka, or read, write, all or none"
        );
        assert!(Change::parse("").is_err());
        assert_eq!(Change::parse("=rl").unwrap(), Change::Set(9));
    }

    #[test]
    fn the_twenty_first_entry_is_refused() {
        let mut list = AccessList::default();
        for n in 0..20 {
            list.change(&format!("user{n}"), Change::Set(1), n % 2 == 0).unwrap();
        }
        let error = list.change("more", Change::Set(1), false).unwrap_err();
        assert_eq!(error.message, "fs: an access list holds at most 20 entries");
    }
}
