//! The list of defences that `scripts/without-defence` takes out agrees with the source: each text is in its file once, and each
//! test exists.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::cited::{exists, functions_of};

/// What an entry says.
const WORDS: [&str; 7] = ["name", "file", "find", "replace", "crate", "program", "tests"];

/// Fewest entries.
const LEAST: usize = 40;

#[test]
fn every_defence_is_in_its_file_once_and_its_tests_exist() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let entries = entries(&std::fs::read_to_string(top.join("tests/defences.toml")).unwrap());
    let mut crates = BTreeMap::new();
    let faults: Vec<String> = entries.iter().flat_map(|entry| faults(top, entry, &mut crates)).collect();
    assert!(faults.is_empty(), "tests/defences.toml:\n{}", faults.join("\n"));
    let names: BTreeSet<&str> = entries.iter().map(|entry| text(entry, "name")).collect();
    assert_eq!(names.len(), entries.len(), "a name twice");
    assert!(names.len() >= LEAST, "only {} entries", names.len());
}

#[test]
fn an_entry_that_does_not_agree_with_the_source_is_found() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let entry = r#"
        [[defence]]
        name = "one"
        file = "tests/tests/cited.rs"
        find = "let"
        replace = ""
        crate = "afs-own"
        program = "lib"
        tests = ["own::tests::nobody_has_written_this"]
        reason = "none""#;
    let found = faults(top, &entries(entry)[0], &mut BTreeMap::new());
    let said = ["one: no such word: reason", "in tests/tests/cited.rs", "nobody_has_written_this"];
    assert_eq!(found.len(), said.len(), "{found:?}");
    assert!(found.iter().zip(said).all(|(found, said)| found.contains(said)), "{found:?}");
}

fn entries(list: &str) -> Vec<toml::Table> {
    let list: toml::Table = list.parse().unwrap();
    let entries = list["defence"].as_array().unwrap();
    entries.iter().map(|entry| entry.as_table().unwrap().clone()).collect()
}

fn text<'a>(entry: &'a toml::Table, word: &str) -> &'a str {
    entry[word].as_str().unwrap()
}

/// What does not agree. `crates` has the functions of the crates that were looked at.
fn faults(top: &Path, entry: &toml::Table, crates: &mut BTreeMap<String, Functions>) -> Vec<String> {
    let (name, file, of) = (text(entry, "name"), text(entry, "file"), text(entry, "crate"));
    let words = entry.keys().filter(|word| !WORDS.contains(&word.as_str()));
    let mut faults: Vec<String> = words.map(|word| format!("{name}: no such word: {word}")).collect();
    let source = std::fs::read_to_string(top.join(file)).unwrap_or_default();
    match source.matches(text(entry, "find")).count() {
        1 => {}
        count => faults.push(format!("{name}: its text is {count} times in {file}")),
    }
    let functions = crates.entry(of.to_owned()).or_insert_with(|| functions_of(&[folder_of(top, of)]));
    let tests = entry["tests"].as_array().unwrap().iter().map(|test| test.as_str().unwrap());
    let missing = tests.filter(|test| !exists(functions, test));
    faults.extend(missing.map(|test| format!("{name}: {of} has no test {test}")));
    faults
}

/// The folder of a crate, in that of its side.
fn folder_of(top: &Path, name: &str) -> PathBuf {
    let sides = std::fs::read_dir(top.join("crates")).unwrap().flatten();
    sides.map(|side| side.path().join(name)).find(|folder| folder.exists()).unwrap_or_default()
}

/// Names of functions, and the files that have them.
type Functions = BTreeMap<String, Vec<PathBuf>>;
