//! Properties of objects in mounts, as the program under test tells them.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::cell::andrew;
use super::netns::Netns;
use super::process::{run, seconds};

/// Most paths of one command, whose words have a limited length.
const AT_ONCE: usize = 500;

/// A property of each path; of a symbolic link, not of its target.
///
/// # Panics
/// If a path has none.
#[must_use]
pub fn properties(paths: &[PathBuf], name: &str) -> Vec<String> {
    paths.chunks(AT_ONCE).flat_map(|some| told(some, name)).collect()
}

/// A property of what is at a path.
///
/// # Panics
/// If it has none.
#[must_use]
pub fn property(path: &Path, name: &str) -> String {
    told(&[path.to_owned()], name).remove(0)
}

fn told(paths: &[PathBuf], name: &str) -> Vec<String> {
    let mut command = Netns::machine().command(andrew());
    command.args(["--json", "fs", "property", "--no-follow", name]).args(paths);
    let said = run(command, seconds(60));
    let all: Vec<Value> = serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"));
    all.iter().map(|one| one["value"].as_str().unwrap_or_default().to_owned()).collect()
}
