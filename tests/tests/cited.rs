//! Every test that a page of the documentation names exists, as does every file and function on the map of
//! `ARCHITECTURE.md`, of the tour and in its pictures.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use andrew_tests::sources::packages;

/// Pages outside `docs`.
const PAGES: [&str; 4] = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md"];

#[test]
fn every_test_that_the_documentation_names_exists() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let functions = functions(top);
    let mut missing = Vec::new();
    let mut count = 0;
    let pages = PAGES.iter().map(|page| top.join(page)).chain(files_in(&[top.join("docs")], "md"));
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for name in cited(&text) {
            count += 1;
            if !exists(&functions, &name) {
                missing.push(format!("{}: {name}", page.display()));
            }
        }
    }
    assert!(count > 250, "only {count} names were found");
    assert!(missing.is_empty(), "no such tests:\n{}", missing.join("\n"));
}

#[test]
fn every_guarantee_names_its_test_or_says_that_it_has_none() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = std::fs::read_to_string(top.join("docs/semantics.md")).unwrap();
    assert!(points(&page).len() > 200, "only {} points were found", points(&page).len());
    let silent: Vec<String> = points(&page).into_iter().filter(|point| !says_its_test(point)).collect();
    assert!(silent.is_empty(), "no test is named, nor \"(No test.)\" written:\n{}", silent.join("\n"));
}

#[test]
fn a_guarantee_without_a_test_is_found() {
    let page = "Text.\n\n* One,\n  `a::b_c`\n* Two\n  lines.\n* Three. (No test: why.)\n\nText `d::e_f`.\n";
    assert_eq!(points(page), ["One, `a::b_c`", "Two lines.", "Three. (No test: why.)"]);
    let silent: Vec<String> = points(page).into_iter().filter(|point| !says_its_test(point)).collect();
    assert_eq!(silent, ["Two lines."]);
}

/// The points of a page's lists, each with the lines that go on with it.
fn points(page: &str) -> Vec<String> {
    let mut points: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        if let Some(first) = line.strip_prefix("* ") {
            points.push(first.to_owned());
            is_open = true;
        } else if let (true, Some(last), Some(more)) = (is_open, points.last_mut(), line.strip_prefix("  ")) {
            last.push(' ');
            last.push_str(more.trim());
        } else {
            is_open = false;
        }
    }
    points
}

fn says_its_test(point: &str) -> bool {
    !cited(point).is_empty() || point.to_lowercase().contains("no test")
}

/// The strings between backticks that have the form of a test's name: words with `::` between them, perhaps with a
/// folder before them; or several words with `_` between them.
fn cited(text: &str) -> BTreeSet<String> {
    let is_name = |text: &&str| {
        let of_a_file = text.contains("::") && !text.ends_with("::");
        let is_sentence = !text.contains(':') && text.matches('_').count() >= SENTENCE_MIN;
        (of_a_file || is_sentence)
            && *text != FORM
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:/".contains(c))
    };
    text.split('`').skip(1).step_by(2).filter(is_name).map(str::to_owned).collect()
}

/// Whether a file or folder of that name has such a function; `...::tests` is a module of tests.
pub(crate) fn exists(functions: &BTreeMap<String, Vec<PathBuf>>, name: &str) -> bool {
    let words: Vec<&str> = name.split("::").collect();
    let (function, place) = words.split_last().unwrap();
    let Some(place) = place.iter().rev().find(|word| **word != "tests") else {
        return functions.contains_key(*function);
    };
    // A folder before the file name selects one of several files of that name.
    let end = Path::new(place);
    let found = functions.get(*function).map(Vec::as_slice).unwrap_or_default();
    found.iter().any(|file| {
        let stem = file.with_extension("");
        stem.ends_with(end)
            || stem.ends_with(format!("tests/{}", end.display()))
            || file.parent().is_some_and(|folder| folder.ends_with(end))
            || file.components().any(|part| part.as_os_str() == end.as_os_str())
    })
}

fn functions(top: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    functions_of(&[top.join("crates"), top.join("tests")])
}

/// Names of functions and modules in and below the folders, and the files that have them.
pub(crate) fn functions_of(folders: &[PathBuf]) -> BTreeMap<String, Vec<PathBuf>> {
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in files_in(folders, "rs") {
        for name in names_in(&std::fs::read_to_string(&path).unwrap()) {
            found.entry(name).or_default().push(path.clone());
        }
    }
    found
}

/// All files in and below the folders whose names end in `extension`.
fn files_in(folders: &[PathBuf], extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), folders.to_vec());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|of_path| of_path == extension) {
                found.push(path);
            }
        }
    }
    found
}

fn names_in(source: &str) -> Vec<String> {
    let after = |line: &str| {
        let line = line.trim_start();
        let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn "));
        rest.or_else(|| line.strip_prefix("mod ")).map(str::to_owned)
    };
    let word = |rest: String| {
        rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>()
    };
    source.lines().filter_map(after).map(word).collect()
}

#[test]
fn a_name_that_does_not_exist_is_found() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let functions = functions(top);
    assert!(exists(&functions, "tests/cited::a_name_that_does_not_exist_is_found"));
    assert!(!exists(&functions, "tests/cited::nobody_has_written_this"));
    assert!(!exists(&functions, "elsewhere::a_name_that_does_not_exist_is_found"));
    assert!(exists(&functions, "a_name_that_does_not_exist_is_found"));
    assert!(!exists(&functions, "a_name_that_nobody_has_written_anywhere"));
    let text = "see `a::b_c` and `a_sentence_of_several_words`, not `Type::new`, `a.rs` or `two_words`";
    let found: Vec<String> = cited(text).into_iter().collect();
    assert_eq!(found, ["a::b_c", "a_sentence_of_several_words"]);
}

#[test]
fn every_path_of_the_architecture_exists() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (page, least) in [("ARCHITECTURE.md", 100), ("docs/tour.md", 10)] {
        let places = places(&std::fs::read_to_string(top.join(page)).unwrap());
        let faults: Vec<String> = places.iter().filter_map(|place| fault(top, place)).collect();
        assert!(places.len() > least, "only {} paths were found in {page}", places.len());
        assert!(faults.is_empty(), "{page} names what does not exist:\n{}", faults.join("\n"));
    }
}

#[test]
fn every_file_of_the_pictures_exists() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let pictures = files_in(&[top.join("docs/pictures")], "svg");
    assert!(pictures.len() >= 3, "only {} pictures were found", pictures.len());
    for picture in pictures {
        let places = pictured(&std::fs::read_to_string(&picture).unwrap());
        let faults: Vec<String> = places.iter().filter_map(|place| fault(top, place)).collect();
        assert!(places.len() > 5, "only {} files were found in {}", places.len(), picture.display());
        assert!(faults.is_empty(), "{}: {}", picture.display(), faults.join("\n"));
    }
}

/// What a picture names in texts of the class `file`: "crate/path below src, name".
fn pictured(picture: &str) -> Vec<CitedPath> {
    let texts = picture.split("class=\"file\"").skip(1).filter_map(|rest| rest.split(['>', '<']).nth(1));
    let place = |text: &str| {
        let (path, name) = text.split_once(", ").unwrap_or((text, ""));
        let (package, below) = path.split_once('/').unwrap_or((path, ""));
        let of_package = packages().into_iter().find(|folder| folder.ends_with(package));
        let path = of_package.unwrap_or_default().join("src").join(below).display().to_string();
        CitedPath { path, names: vec![name.to_owned()] }
    };
    texts.map(place).collect()
}

#[test]
fn a_path_and_a_name_that_do_not_exist_are_found() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = "`tests/tests/cited.rs`, `places` and `CitedPath`; `tests/tests/nowhere.rs`, `places`; \
        `tests/tests/cited.rs`, `unwritten`; `crate/word::Type`, `a / b`, `tests/tests`";
    let faults: Vec<String> = places(page).iter().filter_map(|place| fault(top, place)).collect();
    assert_eq!(faults, ["tests/tests/nowhere.rs", "tests/tests/cited.rs, unwritten"]);
    let picture = "<text class=\"file\" x=\"9\">afs-kv/log.rs, Log</text><text class=\"file\">afs-kv/log.rs, Nobody</text>";
    let faults: Vec<bool> = pictured(picture).iter().map(|place| fault(top, place).is_some()).collect();
    assert_eq!(faults, [false, true]);
}

/// A path from the top of the project, and the functions or types that the page names after it.
struct CitedPath {
    path: String,
    names: Vec<String>,
}

/// The paths between backticks, each with the names that follow it: "`path`, `name` and `name`".
fn places(page: &str) -> Vec<CitedPath> {
    let parts: Vec<&str> = page.split('`').collect();
    let is_path = |text: &str| text.contains('/') && !text.contains("::") && !text.contains(' ');
    let paths = (1..parts.len()).step_by(2).filter(|at| is_path(parts[*at]));
    paths.map(|at| CitedPath { path: parts[at].to_owned(), names: names_after(&parts, at) }).collect()
}

fn names_after(parts: &[&str], path: usize) -> Vec<String> {
    let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let quoted = parts[path + 1..].chunks_exact(2);
    let names = quoted.take_while(|pair| matches!(pair[0], ", " | " and ") && is_name(pair[1]));
    names.map(|pair| pair[1].to_owned()).collect()
}

/// The part of a `Place` that does not exist.
fn fault(top: &Path, place: &CitedPath) -> Option<String> {
    let path = top.join(&place.path);
    if !path.exists() {
        return Some(place.path.clone());
    }
    // A folder defines nothing.
    let source = std::fs::read_to_string(&path).unwrap_or_default();
    let name = place.names.iter().find(|name| !defines(&source, name))?;
    Some(format!("{}, {name}", place.path))
}

/// Whether a source has a function or type of that name.
fn defines(source: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = source.split(|c: char| !is_part(c)).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    words.windows(2).any(|pair| matches!(pair[0], "fn" | "struct" | "enum" | "trait") && pair[1] == name)
}

/// Fewest underscores in the name of a test that is cited without its file: names of options and fields have fewer.
const SENTENCE_MIN: usize = 4;

/// The example with which a page explains the form of test names.
const FORM: &str = "file::test";
