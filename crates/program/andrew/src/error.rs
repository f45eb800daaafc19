//! Messages and exit statuses of commands that fail.

mod cell;
mod kerberos;

use afs_files::secret_file::SecretFileError;
use afs_wire::error::AbortCode;
use std::fmt::{self, Display};

/// Error of a command: one line with the fault and what would be right, and the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// Exit status: [`CommandError::USAGE`] for bad input, [`CommandError::FAILURE`] otherwise.
    pub status: u8,
    /// The line, without the program's name.
    pub message: String,
}

impl CommandError {
    /// Exit status if the input was valid but the operation failed.
    pub const FAILURE: u8 = 1;
    /// Exit status if the input was invalid.
    pub const USAGE: u8 = 2;

    /// Invalid input: the command line, or a file or directory named there.
    pub fn usage(message: impl Display) -> Self {
        Self::with(Self::USAGE, message)
    }

    /// The input was valid, but the operation failed.
    pub fn failed(message: impl Display) -> Self {
        Self::with(Self::FAILURE, message)
    }

    /// Invalid input, or an operation that failed.
    fn of(is_input: bool, message: impl Display) -> Self {
        Self::with(if is_input { Self::USAGE } else { Self::FAILURE }, message)
    }

    /// Messages of libraries and peers may have several lines; a command's error has one.
    fn with(status: u8, message: impl Display) -> Self {
        let lines = message.to_string();
        let words: Vec<&str> = lines.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Self { status, message: without_codes(&words.join(" ")) }
    }
}

/// Removes codes that only a log needs from a peer's refusal, `NAME (NUMBER): meaning`. A code without a meaning stays.
fn without_codes(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(" (") {
        let (before, tail) = rest.split_at(at);
        let name = before.rsplit(|c: char| !c.is_ascii_uppercase() && !c.is_ascii_digit() && c != '_').next();
        let (name, after) = (name.unwrap_or_default(), &tail[2..]);
        let number = after.split_once("): ").and_then(|(number, more)| Some((number.parse().ok()?, more)));
        match number {
            Some((number, more)) if !name.is_empty() && AbortCode(number).name() == Some(name) => {
                let before = &before[..before.len() - name.len()];
                out.push_str(before.strip_suffix("answered ").unwrap_or(before));
                out.push_str(if before.ends_with("answered ") { "answered: " } else { "" });
                rest = more;
            }
            _ => {
                out.push_str(before);
                out.push_str(" (");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

impl From<SecretFileError> for CommandError {
    fn from(error: SecretFileError) -> Self {
        Self::of(is_bad_file(&error), error)
    }
}

/// Faults that the owner of a file of secrets can correct are invalid input.
fn is_bad_file(error: &SecretFileError) -> bool {
    match error {
        SecretFileError::NotAFile(_) | SecretFileError::Owner { .. } | SecretFileError::Mode { .. } => true,
        SecretFileError::Read { .. }
        | SecretFileError::Status { .. }
        | SecretFileError::TooLong(_)
        | SecretFileError::Write { .. } => false,
    }
}

/// Result of a command.
pub type CommandResult<T = ()> = Result<T, CommandError>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_peers_are_left_to_logs() {
        let said = |text: &str| CommandError::failed(text).message;
        let refused = AbortCode::VNOVOL.to_string();
        assert_eq!(refused, "VNOVOL (103): the volume is not on this server");
        assert_eq!(
            said(&format!("vos: server 192.0.2.1 answered {refused}; try (1): again")),
            "vos: server 192.0.2.1 answered: the volume is not on this server; try (1): again"
        );
        for text in ["process 7 (vi): x", "a (", "VNOVOL (104): x", "error 77", "No such file (os error 2)"] {
            assert_eq!(said(text), text);
        }
    }
}
