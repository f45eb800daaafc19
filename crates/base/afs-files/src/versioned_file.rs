//! Text files with a version and a CRC-32C: the checksum is a line of its own, at the beginning, and is of all other bytes.
//!
//! ```text
//! {                               # crc32c 1a2b3c4d
//!   "crc32c": "1a2b3c4d",         format = 1
//!   "format": 1,                  ...
//!   ...
//! ```
//!
//! Programs of before the checksum read such a file too: in JSON it is a field that they do not know, in TOML a comment.

use crate::secret_file::{self, SecretFileError};
use crate::write_durably;
use afs_own::Opening;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Longest file that is read, in bytes.
const LEN_MAX: u64 = 1 << 20;
/// Digits of a checksum.
const DIGITS: usize = 8;

/// Syntax of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON, indented.
    Json,
    /// TOML.
    Toml,
}

/// Why a versioned file could not be read or written. The text names the file and what is to be done.
#[derive(Debug, thiserror::Error)]
pub enum VersionedFileError {
    /// The system refuses.
    #[error("cannot read {}: {error}; {remedy}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
        /// What is to be done.
        remedy: &'static str,
    },
    /// The file of secrets may be read by others, or the system refuses.
    #[error(transparent)]
    Secret(#[from] SecretFileError),
    /// The contents are not those that were written.
    #[error("{} is damaged: {why}; {remedy}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
        /// What is to be done.
        remedy: &'static str,
    },
    /// Another version of the program wrote it.
    #[error("{} has format {format}, this program reads {}; use the version that wrote it", .path.display(), .known.end())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// Those that can be read.
        known: RangeInclusive<u32>,
    },
    /// The system refuses.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
}

/// Contents of a file that this program alone writes. A field `format`, if there is one, is a number of [`Versioned::FORMATS`].
pub trait Versioned: Serialize + DeserializeOwned {
    /// Syntax of the file.
    const SYNTAX: Syntax;
    /// The formats that are read. A file without a number is of the first.
    const FORMATS: RangeInclusive<u32> = 1..=1;
    /// Whether the file holds secrets: others may not read it, and no error quotes it.
    const IS_SECRET: bool = false;
    /// Comment for a person who opens the file, in lines that begin with `#`: for TOML alone.
    const COMMENT: &'static str = "";
    /// What is to be done where the file is damaged: the end of the message.
    const REMEDY: &'static str;

    /// Reads a file; `None` if it does not exist. One without a checksum, of before there were any, is read too.
    ///
    /// # Errors
    /// It cannot be read, is damaged, is longer than 1 MiB, or has an unknown format; a file of secrets may be read by others.
    fn read_file(path: &Path) -> Result<Option<Self>, VersionedFileError> {
        let bytes = if Self::IS_SECRET { secret_file::read(path)? } else { read(path, Self::REMEDY)? };
        bytes.map(|bytes| Self::decode(path, &bytes)).transpose()
    }

    /// Decodes the contents of a file. `path` is for the error alone.
    ///
    /// # Errors
    /// As [`Versioned::read_file`].
    fn decode(path: &Path, bytes: &[u8]) -> Result<Self, VersionedFileError> {
        let damaged = |why| VersionedFileError::Damaged { path: path.to_owned(), why, remedy: Self::REMEDY };
        let text = checked(Self::SYNTAX, bytes).map_err(|why| damaged(why.to_owned()))?;
        let Head { format } = parse(Self::SYNTAX, &text).map_err(damaged)?;
        let format = format.unwrap_or(*Self::FORMATS.start());
        if !Self::FORMATS.contains(&format) {
            return Err(VersionedFileError::Format { path: path.to_owned(), format, known: Self::FORMATS });
        }
        parse(Self::SYNTAX, &text).map_err(damaged)
    }

    /// Replaces the file atomically and durably, with a checksum. Only the owner may read it.
    ///
    /// # Errors
    /// The system refuses.
    fn write_file(&self, path: &Path) -> Result<(), VersionedFileError> {
        let cannot = |error| VersionedFileError::Write { path: path.to_owned(), error };
        let text = self.encode().map_err(cannot)?;
        if Self::IS_SECRET {
            return Ok(secret_file::write(path, text.as_bytes())?);
        }
        let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str()))
        else {
            return Err(cannot(io::ErrorKind::InvalidInput.into()));
        };
        write_durably(directory, name, text.as_bytes()).map_err(cannot)
    }

    /// The contents of a file, with the checksum.
    ///
    /// # Errors
    /// The syntax has no form for a value.
    fn encode(&self) -> io::Result<Zeroizing<String>> {
        let text = Zeroizing::new(match Self::SYNTAX {
            Syntax::Json => serde_json::to_string_pretty(self).map_err(io::Error::from)?,
            Syntax::Toml => toml::to_string(self).map_err(io::Error::other)?,
        });
        let text = Zeroizing::new(format!("{}{}", Self::COMMENT, *text));
        let Frame { open, mark, close } = Self::SYNTAX.frame();
        let rest = text.strip_prefix(open).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(Zeroizing::new(format!("{open}{mark}{:08x}{close}{rest}", crc32c::crc32c(text.as_bytes()))))
    }
}

/// The part of every file by which it is known how to read the rest.
#[derive(Deserialize)]
struct Head {
    format: Option<u32>,
}

/// What is around a checksum.
struct Frame {
    /// Beginning of the contents, before the line of the checksum.
    open: &'static str,
    mark: &'static str,
    close: &'static str,
}

impl Syntax {
    const fn frame(self) -> Frame {
        match self {
            Self::Json => Frame { open: "{\n", mark: "  \"crc32c\": \"", close: "\",\n" },
            Self::Toml => Frame { open: "", mark: "# crc32c ", close: "\n" },
        }
    }
}

/// The contents without the line of the checksum. A mark of which a byte is harmed is taken for none: the contents are whole then.
fn checked(syntax: Syntax, bytes: &[u8]) -> Result<Zeroizing<String>, &'static str> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
    let Frame { open, mark, close } = syntax.frame();
    if format!("{open}{mark}").starts_with(text) {
        return Err("it is empty, or cut");
    }
    let Some(rest) = text.strip_prefix(open).and_then(|rest| rest.strip_prefix(mark)) else {
        return Ok(Zeroizing::new(text.to_owned()));
    };
    let wrong = "it does not have its checksum";
    let (said, rest) = rest.split_at_checked(DIGITS).ok_or(wrong)?;
    let rest = rest.strip_prefix(close).ok_or(wrong)?;
    let contents = Zeroizing::new(format!("{open}{rest}"));
    match u32::from_str_radix(said, 16) {
        Ok(said) if said == crc32c::crc32c(contents.as_bytes()) => Ok(contents),
        _ => Err(wrong),
    }
}

/// The parser's whole message would quote the line, which may be a key.
fn parse<T: DeserializeOwned>(syntax: Syntax, text: &str) -> Result<T, String> {
    match syntax {
        Syntax::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
        Syntax::Toml => toml::from_str(text).map_err(|error| error.message().to_owned()),
    }
}

fn read(path: &Path, remedy: &'static str) -> Result<Option<Zeroizing<Vec<u8>>>, VersionedFileError> {
    let cannot = |error| VersionedFileError::Read { path: path.to_owned(), error, remedy };
    let file = match Opening::read().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(cannot)?,
    };
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(LEN_MAX + 1).read_to_end(&mut bytes).map_err(cannot)?;
    match bytes.len() as u64 > LEN_MAX {
        true => Err(cannot(io::ErrorKind::FileTooLarge.into())),
        false => Ok(Some(bytes)),
    }
}

#[cfg(test)]
mod tests;
