//! Person behind a call with the cell's key, for the audit log: text of bounded length without control characters.

use std::fmt;
use std::sync::Arc;

/// The person who made a call with the cell's key, as the caller says: user id and login name on the caller's host, such as
/// `1000 alice`. Whoever has the cell's key can say anything, so that it decides nothing: the audit log alone has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Person(Arc<str>);

impl Person {
    /// Longest text, in bytes.
    pub const MAX: usize = 64;
    /// Stands for a character that is not printable ASCII.
    const REPLACEMENT: char = '?';

    /// A user of this host, whose name may be unknown.
    #[must_use]
    pub fn of_user(uid: u32, name: Option<&str>) -> Self {
        Self(shown(&name.map_or_else(|| uid.to_string(), |name| format!("{uid} {name}"))))
    }

    /// The person that a caller names: the beginning of the text, without what is not printable. `None` for no text.
    #[must_use]
    pub fn claimed(text: &[u8]) -> Option<Self> {
        // A character has at most four bytes.
        let beginning = text.get(..4 * Self::MAX).unwrap_or(text);
        let text = shown(&String::from_utf8_lossy(beginning));
        (!text.is_empty()).then_some(Self(text))
    }

    /// The text: printable ASCII, at most [`Person::MAX`] bytes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn shown(text: &str) -> Arc<str> {
    let is_plain = |c: &char| matches!(c, ' '..='~');
    let plain = text.chars().map(|c| Some(c).filter(is_plain).unwrap_or(Person::REPLACEMENT));
    plain.take(Person::MAX).collect::<String>().into()
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_name_is_the_number() {
        assert_eq!(Person::of_user(1000, Some("alice")).as_str(), "1000 alice");
        assert_eq!(Person::of_user(1000, None).as_str(), "1000");
    }

    #[test]
    fn a_claimed_person_is_short_and_printable_whatever_was_sent() {
        let claimed = |text: &[u8]| Person::claimed(text).map(|person| person.as_str().to_owned());
        assert_eq!(claimed(b"1000 alice").unwrap(), "1000 alice");
        assert_eq!(claimed(b"0\n{\"who\":\"bob\"}").unwrap(), "0?{\"who\":\"bob\"}");
        assert_eq!(claimed(b"\x1b[2J\x7f\0\r0").unwrap(), "?[2J???0");
        assert_eq!(claimed("1 ä\u{202e}\u{9b}".as_bytes()).unwrap(), "1 ???");
        assert_eq!(claimed(b"\xff\xfe").unwrap(), "??");
        assert_eq!(claimed(b""), None);
        for long in [vec![b'a'; 4096], "\u{1f600}".repeat(1024).into_bytes(), vec![0xf0; 4096]] {
            assert_eq!(claimed(&long).unwrap().len(), Person::MAX);
        }
    }
}
