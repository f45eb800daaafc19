//! Extended attributes of a mount that a measurement reads and sets.

use afs_lab::LabError;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// Longest value read, in bytes.
const LEN_MAX: usize = 64 << 10;

/// Value of an attribute as text.
///
/// # Errors
/// The path is not in a mount of Andrew's, or may not be read.
pub(in crate::commands) fn text(path: &Path, name: &str) -> Result<String, LabError> {
    let mut value = vec![0; LEN_MAX];
    let length =
        getxattr(path, name, &mut value).map_err(|error| failed("read the state of", path, error))?;
    Ok(String::from_utf8_lossy(value.get(..length).unwrap_or_default()).into_owned())
}

/// Value of an attribute in JSON; `None` if it has another form, or cannot be read.
pub(super) fn json<T: DeserializeOwned>(path: &Path, name: &str) -> Option<T> {
    serde_json::from_str(&text(path, name).ok()?).ok()
}

/// Sets an attribute; `operation` is the verb of the error.
///
/// # Errors
/// The mount refuses it.
pub(super) fn set(path: &Path, name: &str, value: &[u8], operation: &'static str) -> Result<(), LabError> {
    setxattr(path, name, value, XattrFlags::empty()).map_err(|error| failed(operation, path, error))
}

fn failed(operation: &'static str, path: &Path, error: impl Into<io::Error>) -> LabError {
    LabError::Io { operation, path: path.to_owned(), source: error.into() }
}
