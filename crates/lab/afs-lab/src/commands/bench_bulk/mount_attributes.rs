//! Properties of objects in a mount that a measurement reads and sets.

use afs_cell::tokens::properties;
use afs_lab::LabError;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;

/// Value of a property as text.
///
/// # Errors
/// The path is not in a mount of Andrew's, or may not be read.
pub(crate) fn text(path: &Path, name: &str) -> Result<String, LabError> {
    let value = properties::get(path, name).map_err(|error| failed("read the state of", path, error))?;
    Ok(String::from_utf8_lossy(&value).into_owned())
}

/// Value of a property in JSON; `None` if it has another form, or cannot be read.
pub(super) fn json<T: DeserializeOwned>(path: &Path, name: &str) -> Option<T> {
    serde_json::from_str(&text(path, name).ok()?).ok()
}

/// Sets a property; `operation` is the verb of the error.
///
/// # Errors
/// The mount refuses it.
pub(super) fn set(path: &Path, name: &str, value: &[u8], operation: &'static str) -> Result<(), LabError> {
    properties::set(path, name, value).map_err(|error| failed(operation, path, error))
}

fn failed(operation: &'static str, path: &Path, error: impl Into<io::Error>) -> LabError {
    LabError::Io { operation, path: path.to_owned(), source: error.into() }
}
