//! Source files of the product, for rules about its code.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates for tests and measurements.
const NOT_THE_PRODUCT: [&str; 3] = ["afs-lab", "afs-sim", "afs-testkit"];

/// The files of the product whose code `has` what is looked for, by their paths from the folder of their crate on, sorted. Tests are left out, and so are the
/// crates in `without`.
///
/// # Panics
/// If the sources cannot be read.
#[must_use]
pub fn files_with(without: &[&str], has: impl Fn(&str) -> bool) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates");
    let is_left_out = |path: &Path| NOT_THE_PRODUCT.iter().chain(without).any(|name| path.ends_with(name));
    let mut found = Vec::new();
    let packages = entries(&crates).into_iter().flat_map(|side| entries(&side));
    for package in packages.filter(|path| !is_left_out(path)) {
        collect(&package.join("src"), &mut found, &has);
    }
    // Without the folder of the side.
    let below = |path: &PathBuf| {
        let path = path.strip_prefix(&crates).unwrap_or(path);
        path.components().skip(1).collect::<PathBuf>().display().to_string()
    };
    let mut found: Vec<String> = found.iter().map(below).collect();
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>, has: &impl Fn(&str) -> bool) {
    for path in entries(folder) {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        let is_of_tests = stem.ends_with("tests") || stem == "test_kit";
        if path.is_dir() && !is_of_tests {
            collect(&path, found, has);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_of_tests && has(&code_of(&path)) {
            found.push(path);
        }
    }
}

fn code_of(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}
