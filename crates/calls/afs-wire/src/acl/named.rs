//! Access lists in calls: a text with names. Source: `docs/protocol/fileserver.md` "5.3 ACL text form
//! (FetchACL/StoreACL payload)".

use super::{Acl, ENTRIES_MAX, TooManyEntries};
use crate::fs::AclText;
use crate::ids::{Rights, ViceId};
use std::fmt::{self, Write};

/// Longest name of a user or group, in bytes.
pub const NAME_MAX: usize = 63;

/// Mapping between names and ids: the protection database, or a substitute.
pub trait Names {
    /// The name of a user or group; `None` if it has none.
    fn name_of(&self, id: ViceId) -> Option<String>;
    /// The user or group with a name.
    fn id_of(&self, name: &str) -> Option<ViceId>;
}

/// The names that exist in every cell.
#[derive(Clone, Copy, Debug, Default)]
pub struct WellKnownNames;

impl Names for WellKnownNames {
    fn name_of(&self, id: ViceId) -> Option<String> {
        id.well_known_name().map(Into::into)
    }

    fn id_of(&self, name: &str) -> Option<ViceId> {
        ViceId::from_well_known_name(name)
    }
}

/// One entry of a [`NamedAcl`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEntry {
    /// Name of a user or group; a decimal id if it has no name.
    pub name: String,
    /// Its rights.
    pub rights: Rights,
}

/// An access list with names instead of ids.
///
/// The text is two lines of counts, positive and negative, then a line `name<TAB>rights` for each entry, the rights
/// being a signed decimal number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedAcl {
    /// Rights granted.
    pub positive: Vec<NamedEntry>,
    /// Rights denied.
    pub negative: Vec<NamedEntry>,
}

/// Why a text is not a valid access list. Servers answer a StoreACL with EINVAL for all of these.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAcl {
    /// The text of a StoreACL must end with a NUL.
    #[error("the access list does not end with a NUL")]
    NoNul,
    /// The text is not ASCII or UTF-8.
    #[error("the access list is no text")]
    NoText,
    /// The first two lines are not two counts.
    #[error("the access list does not begin with two counts")]
    BadCount,
    /// More entries than an access list can have.
    #[error(transparent)]
    TooManyEntries(#[from] TooManyEntries),
    /// Fewer lines than the counts say.
    #[error("the access list ends before its last entry")]
    Short,
    /// A line that is not a name, a tab and a number.
    #[error("{0:?} is no entry of an access list")]
    BadEntry(String),
    /// An unknown name, or that of the anonymous user, who can have no entry.
    #[error("no user or group is called {0:?}")]
    UnknownName(String),
}

impl NamedAcl {
    /// Decodes the argument of StoreACL. A NUL is required; bytes after it are ignored.
    ///
    /// # Errors
    /// [`BadAcl`].
    pub fn from_opaque(opaque: &[u8]) -> Result<Self, BadAcl> {
        if opaque.contains(&0) { Self::from_text(opaque) } else { Err(BadAcl::NoNul) }
    }

    /// Parses a text, up to its NUL if it has one.
    ///
    /// # Errors
    /// [`BadAcl`].
    pub fn from_text(text: &[u8]) -> Result<Self, BadAcl> {
        let text = text.split(|&c| c == 0).next().unwrap_or_default();
        let mut lines = std::str::from_utf8(text).map_err(|_| BadAcl::NoText)?.split('\n');
        let mut count =
            || lines.next().and_then(|line| line.trim().parse::<usize>().ok()).ok_or(BadAcl::BadCount);
        let (positive, negative) = (count()?, count()?);
        let total = positive.saturating_add(negative);
        if total > ENTRIES_MAX {
            return Err(TooManyEntries(total).into());
        }
        let mut entries = |count: usize| -> Result<Vec<_>, BadAcl> {
            (0..count).map(|_| NamedEntry::parse(lines.next().ok_or(BadAcl::Short)?)).collect()
        };
        Ok(Self { positive: entries(positive)?, negative: entries(negative)? })
    }

    /// The text as FetchACL and StoreACL carry it, NUL included.
    ///
    /// # Errors
    /// [`TooLong`](crate::xdr::TooLong) over 1024 bytes; servers answer E2BIG.
    pub fn to_opaque(&self) -> Result<AclText, crate::xdr::TooLong> {
        AclText::new(format!("{self}\0"))
    }

    /// Translates the names to ids.
    ///
    /// # Errors
    /// [`BadAcl::UnknownName`], [`BadAcl::TooManyEntries`].
    pub fn resolve(&self, names: &impl Names) -> Result<Acl, BadAcl> {
        let id = |entry: &NamedEntry| match names.id_of(&entry.name) {
            Some(id) if id != ViceId::ANONYMOUS => Ok((id, entry.rights)),
            _ => Err(BadAcl::UnknownName(entry.name.clone())),
        };
        let ids = |entries: &[NamedEntry]| entries.iter().map(id).collect::<Result<Vec<_>, _>>();
        Ok(Acl::new(ids(&self.positive)?, ids(&self.negative)?)?)
    }
}

impl NamedEntry {
    fn parse(line: &str) -> Result<Self, BadAcl> {
        let bad = || BadAcl::BadEntry(line.chars().take(80).collect());
        let mut words = line.split_ascii_whitespace();
        let (name, rights) = words.next().zip(words.next()).ok_or_else(bad)?;
        if words.next().is_some() || name.len() > NAME_MAX {
            return Err(bad());
        }
        let rights: i32 = rights.parse().map_err(|_| bad())?;
        Ok(Self { name: name.into(), rights: Rights(rights as u32) })
    }
}

impl fmt::Display for NamedAcl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n", self.positive.len(), self.negative.len())?;
        for entry in self.positive.iter().chain(&self.negative) {
            f.write_str(&entry.name)?;
            f.write_char('\t')?;
            writeln!(f, "{}", entry.rights.0 as i32)?;
        }
        Ok(())
    }
}

impl Acl {
    /// Translates the ids to names; an id without a name is written as its decimal number.
    pub fn named(&self, names: &impl Names) -> NamedAcl {
        let entry = |(id, rights): &(ViceId, Rights)| NamedEntry {
            name: names.name_of(*id).unwrap_or_else(|| id.to_string()),
            rights: *rights,
        };
        NamedAcl {
            positive: self.positive.iter().map(entry).collect(),
            negative: self.negative.iter().map(entry).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_list() {
        let acl = Acl::new(
            vec![(ViceId::ADMINISTRATORS, Rights::ALL), (ViceId(7), Rights(0x8000_0001))],
            vec![(ViceId::ANYUSER, Rights::WRITE)],
        )
        .unwrap();
        let text = acl.named(&WellKnownNames).to_opaque().unwrap();
        let wanted = b"2\n1\nsystem:administrators\t127\n7\t-2147483647\nsystem:anyuser\t2\n\0";
        assert_eq!(text.as_bytes(), wanted);
        let named = NamedAcl::from_opaque(&text).unwrap();
        assert_eq!(named.resolve(&WellKnownNames), Err(BadAcl::UnknownName("7".into())));
    }

    #[test]
    fn a_stored_text_needs_its_nul_and_ends_there() {
        let text = b"1\n0\nsystem:anyuser 9\n\0 and more";
        let acl = NamedAcl::from_opaque(text).unwrap().resolve(&WellKnownNames).unwrap();
        assert_eq!(acl.positive, [(ViceId::ANYUSER, Rights(9))]);
        assert_eq!(NamedAcl::from_opaque(b"0\n0\n"), Err(BadAcl::NoNul));
        assert_eq!(NamedAcl::from_opaque(b""), Err(BadAcl::NoNul));
        assert_eq!(NamedAcl::from_opaque(b"0\n0\n\0"), Ok(NamedAcl::default()));
    }

    #[test]
    fn texts_that_are_no_list() {
        let long = format!("1\n0\n{} 1\n\0", "x".repeat(64));
        for text in [
            "\0",
            "1\0",
            "x\n0\n\0",
            "-1\n0\n\0",
            "1\n0\n\0",
            "1\n0\na\n\0",
            "1\n0\na b\n\0",
            "1\n0\na 1 2\n\0",
            "20\n1\n\0",
            "18446744073709551615\n2\n\0",
            "dfs:x\n0\n\0",
            "1\n0\na 99999999999\n\0",
            &long,
        ] {
            assert!(NamedAcl::from_opaque(text.as_bytes()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_anonymous_user_can_have_no_entry() {
        let named = NamedAcl::from_text(b"1\n0\nanonymous 9\n").unwrap();
        assert_eq!(named.resolve(&WellKnownNames), Err(BadAcl::UnknownName("anonymous".into())));
    }
}
