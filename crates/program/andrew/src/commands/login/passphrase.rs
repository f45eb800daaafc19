//! Secrets from a terminal and from files: passphrases, join keys.

use crate::error::{CommandError, CommandResult};
use afs_auth::Secret;
use afs_files::secret_file;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use zeroize::Zeroizing;

/// Longest passphrase, in bytes.
const LEN_MAX: usize = 1024;

/// What is read, and the option that names a file with it.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Kind {
    /// What it is.
    pub name: &'static str,
    /// The option.
    pub option: &'static str,
}

/// A passphrase.
pub(in crate::commands) const PASSPHRASE: Kind = Kind { name: "passphrase", option: "--passphrase-file" };

/// Reads a secret from the terminal, without echo.
///
/// # Errors
/// There is no terminal, or the user aborted.
pub(in crate::commands) fn ask(kind: Kind, prompt: &str) -> CommandResult<Secret> {
    let Kind { name, option } = kind;
    let cannot =
        |e: io::Error| CommandError::usage(format!("cannot ask for a {name}: {e}; give it with {option}"));
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    let mut terminal = terminal.map_err(|_| {
        CommandError::usage(format!("there is no terminal to type the {name} at; give it with {option}"))
    })?;
    write!(terminal, "{prompt}: ").map_err(cannot)?;
    let line = {
        let _quiet = NoEcho::begin(&terminal).map_err(cannot)?;
        read_line(&mut &terminal).map_err(cannot)
    };
    let _ = writeln!(terminal);
    let line = line?;
    if line.is_empty() {
        return Err(CommandError::usage(format!("no {name} was given")));
    }
    Ok(Secret::new(line.to_vec()))
}

/// Reads a new passphrase, twice.
///
/// # Errors
/// As [`ask`], or the two differ.
pub(in crate::commands) fn ask_new(user: &str) -> CommandResult<Secret> {
    let first = ask(PASSPHRASE, &format!("New passphrase of {user}"))?;
    if ask(PASSPHRASE, "The same again")? == first {
        return Ok(first);
    }
    Err(CommandError::usage("the two are not the same; nothing was changed"))
}

/// Reads the first line of a file that others cannot read, or of an open descriptor given as its number or as
/// `/dev/fd/N`.
///
/// # Errors
/// It cannot be read, or others could read it too.
pub(in crate::commands) fn from_file(Kind { name: what, .. }: Kind, path: &Path) -> CommandResult<Secret> {
    let shown = path.display();
    let cannot = |e: io::Error| CommandError::usage(format!("cannot read the {what} from {shown}: {e}"));
    let name = path.to_str().unwrap_or_default();
    let number = name.strip_prefix("/dev/fd/").unwrap_or(name);
    let line = if !number.is_empty() && number.bytes().all(|c| c.is_ascii_digit()) {
        read_line(&mut File::open(format!("/dev/fd/{number}")).map_err(cannot)?).map_err(cannot)?
    } else {
        let bytes = secret_file::read(path)?.ok_or_else(|| cannot(io::ErrorKind::NotFound.into()))?;
        read_line(&mut bytes.as_slice()).map_err(cannot)?
    };
    if line.is_empty() {
        return Err(CommandError::usage(format!("{shown} has no {what} in its first line")));
    }
    Ok(Secret::new(line.to_vec()))
}

/// Reads byte by byte, so that no part of the secret stays in a buffer.
fn read_line(from: &mut impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut line = Zeroizing::new(Vec::with_capacity(LEN_MAX));
    let mut byte = Zeroizing::new([0]);
    while from.read(byte.as_mut_slice())? == 1 && byte[0] != b'\n' {
        if line.len() == LEN_MAX {
            return Err(io::Error::other(format!("it may have at most {LEN_MAX} bytes")));
        }
        line.push(byte[0]);
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    Ok(line)
}

/// Switches the terminal's echo off until it is dropped.
struct NoEcho<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> NoEcho<'a> {
    fn begin(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for NoEcho<'_> {
    fn drop(&mut self) {
        let _ = tcsetattr(self.terminal, OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_line_of_a_file_that_only_its_owner_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass");
        fs::write(&path, "correct horse\r\nsecond line\n").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        assert!(from_file(PASSPHRASE, &path).unwrap_err().message.contains("chmod 600"));
        let open = File::open(&path).unwrap();
        for name in [format!("/dev/fd/{}", open.as_raw_fd()), open.as_raw_fd().to_string()] {
            assert_eq!(from_file(PASSPHRASE, Path::new(&name)).unwrap().expose(), b"correct horse");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(from_file(PASSPHRASE, &path).unwrap().expose(), b"correct horse");
        fs::write(&path, vec![b'x'; LEN_MAX + 1]).unwrap();
        assert!(from_file(PASSPHRASE, &path).unwrap_err().message.contains("at most 1024 bytes"));
        fs::write(&path, "\n").unwrap();
        assert!(from_file(PASSPHRASE, &path).unwrap_err().message.contains("no passphrase"));
    }
}
