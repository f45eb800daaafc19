//! What a command ends with when it does not succeed.

use std::fmt::{self, Display};

/// An error as a person sees it: one line that says what was wrong and what would be right, and
/// the exit status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// Exit status: [`CommandError::USAGE`] for bad input, [`CommandError::FAILURE`] otherwise.
    pub status: u8,
    /// The line, without the program's name.
    pub message: String,
}

impl CommandError {
    /// Exit status when the input was right but the work failed.
    pub const FAILURE: u8 = 1;
    /// Exit status when the input was wrong.
    pub const USAGE: u8 = 2;

    /// Bad input: the command line, or a file or directory it names.
    pub fn usage(message: impl Display) -> Self {
        Self::with(Self::USAGE, message)
    }

    /// The input was right, the work failed.
    pub fn failed(message: impl Display) -> Self {
        Self::with(Self::FAILURE, message)
    }

    /// Messages of libraries and peers may hold several lines; a command's error is one.
    fn with(status: u8, message: impl Display) -> Self {
        let lines = message.to_string();
        let words: Vec<&str> = lines.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        Self { status, message: words.join(" ") }
    }
}

impl Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandError {}

/// What a command answers.
pub type CommandResult<T = ()> = Result<T, CommandError>;
