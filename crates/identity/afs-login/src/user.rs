//! User names.

use std::fmt;
use std::sync::Arc;

use afs_wire::login::UserText;

/// A name in the form of the protection database: lower-case, of this cell. At most 63 bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct UserName(Arc<str>);

/// Why a text is no user's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{name:?} is not a user's name: use 1 to 63 letters, digits, '.', '-', '_' and the like, without a cell"
)]
pub struct BadUserName {
    /// The beginning of the text.
    pub name: String,
}

impl UserName {
    /// Parses a name; capital letters become small ones.
    ///
    /// # Errors
    /// It is empty or too long, or has a character that is not printable ASCII, or one that is special in group
    /// names, foreign names, paths or quoted text.
    pub fn new(name: &str) -> Result<Self, BadUserName> {
        let fine = |c: char| c.is_ascii_graphic() && !"@:/\\\"'`".contains(c);
        if name.is_empty() || name.len() > UserText::MAX || !name.chars().all(fine) {
            return Err(BadUserName { name: name.chars().take(UserText::MAX).collect() });
        }
        Ok(Self(name.to_ascii_lowercase().into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The wire form.
    pub(crate) fn to_wire(&self) -> UserText {
        // A name is never longer than its wire form may be.
        UserText::truncated(self.0.as_bytes())
    }

    /// Decodes the wire form.
    pub(crate) fn from_wire(text: &UserText) -> Result<Self, BadUserName> {
        Self::new(&text.to_text())
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_small_letters_of_this_cell() {
        assert_eq!(UserName::new("Alice.Admin").unwrap().as_str(), "alice.admin");
        for name in ["", "a@b", "system:any", "a b", "a\n", "é", &"a".repeat(64)] {
            assert!(UserName::new(name).is_err(), "{name:?}");
        }
    }
}
