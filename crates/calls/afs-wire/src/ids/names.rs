//! Cell and volume names, validated at construction.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Why a text is not a cell or volume name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NameError {
    /// The text is empty.
    #[error("a {what} name cannot be empty")]
    Empty {
        /// "cell" or "volume".
        what: &'static str,
    },
    /// The text is too long.
    #[error("{name:?} is too long for a {what} name: at most {limit} characters")]
    TooLong {
        /// "cell" or "volume".
        what: &'static str,
        /// The beginning of the text.
        name: String,
        /// The bound in bytes.
        limit: usize,
    },
    /// The text has a character that is not permitted.
    #[error("{character:?} cannot stand in the {what} name {name:?}: use letters, digits, '.', '-' and '_'")]
    BadCharacter {
        /// "cell" or "volume".
        what: &'static str,
        /// The text.
        name: String,
        /// The first offending character.
        character: char,
    },
    /// A cell name that would change the path `/afs/<cell>`.
    #[error("{name:?} cannot be a cell name: it begins with a dot or has an empty part")]
    BadCell {
        /// The text.
        name: String,
    },
}

fn check(what: &'static str, name: &str, limit: usize) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty { what });
    }
    if name.len() > limit {
        return Err(NameError::TooLong { what, name: name.chars().take(limit).collect(), limit });
    }
    match name.chars().find(|c| !(c.is_ascii_alphanumeric() || ".-_".contains(*c))) {
        None => Ok(()),
        Some(character) => Err(NameError::BadCharacter { what, name: name.into(), character }),
    }
}

macro_rules! name {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }
    };
}

name! {
    /// A cell's name: a DNS-style name in lower case, at most 64 characters.
    CellName
}

impl CellName {
    /// Longest name, in bytes.
    pub const MAX: usize = 64;

    /// Validates a name and lower-cases it, since DNS ignores case.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        check("cell", text, Self::MAX)?;
        if text.split('.').any(str::is_empty) {
            return Err(NameError::BadCell { name: text.into() });
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }
}

name! {
    /// A volume's name: letters, digits, `.`, `-`, `_`; at most 64 characters, compared exactly.
    ///
    /// Source: `docs/protocol/vldb.md` "4. Semantics". Suffixes `.readonly` and `.backup` are the business of
    /// [`volname`](crate::volname).
    VolumeName
}

impl VolumeName {
    /// Longest name the location database holds, in bytes.
    pub const MAX: usize = 64;
    /// Longest name a volume header holds, in bytes.
    pub const HEADER_MAX: usize = 31;
    /// Longest name of a read-write volume whose read-only and backup names still fit a volume header, in bytes.
    pub const BASE_MAX: usize = 22;

    /// Validates a name.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn new(text: &str) -> Result<Self, NameError> {
        check("volume", text, Self::MAX)?;
        Ok(Self(text.into()))
    }

    /// Validates a name given as bytes.
    ///
    /// # Errors
    /// [`NameError`].
    pub fn from_bytes(text: &[u8]) -> Result<Self, NameError> {
        Self::new(&String::from_utf8_lossy(text))
    }

    /// Whether the location service treats the name as a volume's number.
    pub fn is_number(&self) -> bool {
        self.0.bytes().all(|c| c.is_ascii_digit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volume_names() {
        assert_eq!(VolumeName::new("user.alice_2-x").unwrap().as_str(), "user.alice_2-x");
        assert!(VolumeName::new(&"v".repeat(64)).is_ok());
        assert!(matches!(VolumeName::new(&"v".repeat(65)), Err(NameError::TooLong { limit: 64, .. })));
        assert!(matches!(VolumeName::new("a b"), Err(NameError::BadCharacter { character: ' ', .. })));
        assert!(matches!(VolumeName::from_bytes(b"\xff"), Err(NameError::BadCharacter { .. })));
        assert!(matches!(VolumeName::new(""), Err(NameError::Empty { what: "volume" })));
        assert!(VolumeName::new("536870912").unwrap().is_number());
    }

    #[test]
    fn cell_names() {
        assert_eq!(CellName::new("Example.ORG").unwrap().as_str(), "example.org");
        for bad in ["", ".", "..", ".example.org", "example..org", "example.org.", "a/b"] {
            assert!(CellName::new(bad).is_err(), "{bad:?}");
        }
    }
}
