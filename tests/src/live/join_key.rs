//! The join key that `andrew drive serve` prints, in a file, as `andrew drive add` takes it.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes the key in `said` to a file for this user alone; returns its path.
///
/// # Panics
/// If there is no key, or the file cannot be written.
#[must_use]
pub fn file(said: &str, at: &Path) -> String {
    let key = said.split("--join-key FILE:\n").nth(1).and_then(|rest| rest.lines().next());
    let key = key.unwrap_or_else(|| panic!("no join key: {said}")).trim();
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(at);
    let written = opened.and_then(|mut file| file.write_all(key.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", at.display()));
    at.display().to_string()
}
