//! Source files of the crates, for rules about their code.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates for tests and measurements.
const NOT_THE_PRODUCT: [&str; 3] = ["afs-lab", "afs-sim", "afs-testkit"];

/// A source file without its tests.
pub struct Source {
    /// Its path from the folder of its crate on.
    pub path: String,
    /// Its text.
    pub code: String,
}

/// The files of the product whose code `has` what is looked for, by their paths from the folder of their crate on, sorted. Tests are left out, and so are the
/// crates in `without`.
///
/// # Panics
/// If the sources cannot be read.
#[must_use]
pub fn files_with(without: &[&str], has: impl Fn(&str) -> bool) -> Vec<String> {
    let is_left_out =
        |path: &str| NOT_THE_PRODUCT.iter().chain(without).any(|name| path.split('/').next() == Some(name));
    let found = sources().into_iter().filter(|source| !is_left_out(&source.path) && has(&source.code));
    found.map(|source| source.path).collect()
}

/// The files of all crates, sorted by path. Tests are left out.
///
/// # Panics
/// If the sources cannot be read.
#[must_use]
pub fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for package in packages() {
        collect(&package.join("src"), &package, &mut found);
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// The folders of all crates.
#[must_use]
pub fn packages() -> Vec<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
    entries(&crates).into_iter().flat_map(|side| entries(&side)).collect()
}

fn collect(folder: &Path, package: &Path, found: &mut Vec<Source>) {
    for path in entries(folder) {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if stem.ends_with("tests") || stem == "test_kit" {
            continue;
        }
        if path.is_dir() {
            collect(&path, package, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let below = path.strip_prefix(package.parent().unwrap_or(package)).unwrap_or(&path);
            found.push(Source { path: below.display().to_string(), code: code_of(&path) });
        }
    }
}

/// The text of a file up to the module of its tests.
fn code_of(path: &Path) -> String {
    let mut text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_of_tests = |at: &usize| {
        let mut below = text[*at..].lines().skip_while(|line| line.starts_with("#["));
        below.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    let tests = text.match_indices("#[cfg(test)]\n").map(|(at, _)| at).find(is_of_tests);
    text.truncate(tests.unwrap_or(text.len()));
    text
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
