//! Paths in the project's files: all lead to something inside the clone.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Relative paths end inside the clone, and lead to something. Those in Rust sources may lead nowhere, since most are
/// data of tests; the compiler checks the others.
#[test]
fn relative_paths_stay_in_the_clone() {
    let mut wrong = Vec::new();
    for (file, text) in texts() {
        let is_rust = file.extension().is_some_and(|extension| extension == "rs");
        for path in paths(&text).filter(|path| path.contains("../") && !path.starts_with('/')) {
            let fine = match resolved(file.parent().unwrap(), path) {
                Some(location) => is_rust || is_data(&file, path) || root().join(location).exists(),
                None => false,
            };
            if !fine {
                wrong.push(format!("{}: {path}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "paths that lead nowhere in the clone: {wrong:#?}");
}

/// Programs find the project's folder, and do not use the one that contains it.
#[test]
fn programs_do_not_climb_out_of_the_clone() {
    let climbs = [concat!("join(\"", ".."), concat!("ROOT", ".parent"), concat!("CURDIR)", "/..")];
    let mut wrong = Vec::new();
    for (file, text) in texts() {
        wrong
            .extend(climbs.iter().filter(|climb| text.contains(**climb)).map(|climb| (file.clone(), *climb)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// No file names the folder of this clone, or the one that contains it. Folders directly below `/` are not checked,
/// since their names can have other meanings.
#[test]
fn no_file_names_where_this_clone_is() {
    let root = root();
    let locations = root.ancestors().take(2).filter(|location| location.components().count() > 2);
    let locations: Vec<&str> = locations.map(|location| location.to_str().unwrap()).collect();
    let mut wrong = Vec::new();
    for (file, text) in texts() {
        let named = |path: &&str| locations.iter().any(|location| Path::new(path).starts_with(location));
        wrong.extend(paths(&text).filter(named).map(|path| format!("{}: {path}", file.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The path that a relative path in a folder of the project leads to; None if it leads out of the project.
fn resolved(folder: &Path, path: &str) -> Option<PathBuf> {
    let mut location = folder.to_owned();
    for component in Path::new(path).components() {
        match component {
            Component::ParentDir if !location.pop() => return None,
            Component::Normal(name) => location.push(name),
            _ => {}
        }
    }
    Some(location)
}

/// Targets of symbolic links that programs create elsewhere.
fn is_data(file: &Path, path: &str) -> bool {
    let known = [
        ("scripts/soaking/exerciser.py", "../b"),
        ("tests/peers/kafs/programs.py", "../bin/kmod"),
        ("tests/peers/kafs/image.py", "../run"),
    ];
    known.contains(&(file.to_str().unwrap(), path))
}

/// The words of a text that can be paths.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_of_path = |letter: char| letter.is_alphanumeric() || "._-/$~+@".contains(letter);
    text.split(move |letter| !is_of_path(letter)).filter(|word| word.contains('/'))
}

/// The project's texts, by their paths in it, without anything built or fetched.
fn texts() -> Vec<(PathBuf, String)> {
    let (root, mut found) = (root(), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() && !is_made(&path) {
                folders.push(path);
            } else if kind.is_file()
                && entry.file_name() != ".git"
                && let Ok(text) = fs::read_to_string(&path)
            {
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 1000, "{} files only", found.len());
    found
}

/// Whether a folder is one of those that `.gitignore` names, or git's own.
fn is_made(folder: &Path) -> bool {
    let name = folder.file_name().unwrap().to_str().unwrap();
    let is_fuzzing = folder.parent().unwrap().ends_with("fuzz") && ["corpus", "artifacts"].contains(&name);
    name.starts_with("target") || [".git", "__pycache__"].contains(&name) || is_fuzzing
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
