//! Sessions: ids of groups of programs with tokens of their own, separate from the user's other programs.

use super::error::TokenError;
use crate::error::CellResult;
use std::fmt;
use std::str::FromStr;

/// Environment variable that puts a process into a session.
pub const VARIABLE: &str = "ANDREW_SESSION";

/// Id of a session: 128 random bits. A process of the same user that knows the id may use the session's tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub [u8; 16]);

impl SessionId {
    /// The id as a number.
    #[must_use]
    pub fn number(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The session of this process, if it is in one.
    ///
    /// # Errors
    /// The variable has an invalid value.
    pub fn current() -> CellResult<Option<Self>> {
        match std::env::var(VARIABLE) {
            Ok(text) => text.parse().map(Some).map_err(|()| TokenError::Session.into()),
            Err(_) => Ok(None),
        }
    }
}

/// 32 hexadecimal digits.
impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Only its beginning: among the user's processes, the rest is as secret as a password.
impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionId({:02x}{:02x}…)", self.0[0], self.0[1])
    }
}

impl FromStr for SessionId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if text.len() != 32 || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(|number| Self(number.to_be_bytes())).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_read_back_and_are_not_shown() {
        let id = SessionId([0xab; 16]);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{id:?}"), "SessionId(abab…)");
        for text in ["", "ab", "+babababababababababababababababa", &"g".repeat(32), &"é".repeat(16)] {
            assert_eq!(text.parse::<SessionId>(), Err(()), "{text}");
        }
    }
}
