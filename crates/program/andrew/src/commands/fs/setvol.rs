//! `andrew fs setvol`: sets the quota and the off-line message of volumes.

use super::attribute;
use super::paths::Paths;
use super::setquota::kib;
use crate::error::{CommandError, CommandResult};

/// Longest off-line message, in bytes (docs/protocol/dump.md, tag `O`).
const MESSAGE_LEN_MAX: usize = 127;

/// Options of `andrew fs setvol`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The message is shown by `andrew fs examine`. It cannot be made empty again. Without --max the quota\nstays, without --offlinemsg the message. For administrators.\n\nExamples:\n  andrew fs setvol ~/afs/projects --max 5G --offlinemsg 'moves on Sunday at 8'"
)]
pub struct Args {
    #[command(flatten)]
    paths: Paths,
    /// The quota: units of 1024 bytes, or a number with k, M, G or T; 0 is no limit
    #[arg(long, value_name = "KIB")]
    max: Option<String>,
    /// Why the volume is, or will be, off line; at most 127 bytes
    #[arg(long, value_name = "TEXT")]
    offlinemsg: Option<String>,
}

impl Args {
    /// Sets what is given, at each path in turn.
    ///
    /// # Errors
    /// Nothing to set, a quota that is not a number, a message that is empty or too long; the first path that is not in
    /// AFS, or whose volume the user may not administrate.
    pub fn run(self) -> CommandResult {
        let quota = self.max.as_deref().map(kib).transpose()?;
        let message = self.offlinemsg.as_deref().map(message).transpose()?;
        if quota.is_none() && message.is_none() {
            return Err(CommandError::usage("fs: setvol needs --max, --offlinemsg or both"));
        }
        for path in self.paths.all() {
            if let Some(quota) = quota {
                attribute::set(&path, "afs.quota", quota.to_string().as_bytes())?;
            }
            if let Some(message) = message {
                attribute::set(&path, "afs.offlinemsg", message.as_bytes())?;
            }
        }
        Ok(())
    }
}

/// A message that a volume can have.
fn message(text: &str) -> CommandResult<&str> {
    match text.trim() {
        "" => Err(CommandError::usage("fs: an off-line message cannot be made empty")),
        text if text.len() > MESSAGE_LEN_MAX => Err(CommandError::usage(format!(
            "fs: an off-line message has at most {MESSAGE_LEN_MAX} bytes, and this one has {}",
            text.len()
        ))),
        text => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_neither_empty_nor_too_long() {
        assert_eq!(message(" back soon\n").unwrap(), "back soon");
        assert_eq!(message(" ").unwrap_err().message, "fs: an off-line message cannot be made empty");
        let long = message(&"x".repeat(128)).unwrap_err();
        assert_eq!(long.message, "fs: an off-line message has at most 127 bytes, and this one has 128");
    }
}
