//! Every decision begins with a title of its date, whether it is in force, and a summary.

use std::path::{Path, PathBuf};

#[test]
fn every_decision_says_whether_it_is_in_force_and_what_it_is() {
    let files = decisions();
    let fault = |file: &PathBuf| Some(format!("{}: {}", name(file), fault(file, &read(file))?));
    let faults: Vec<String> = files.iter().filter_map(fault).collect();
    assert!(files.len() > 40, "only {} decisions were found", files.len());
    assert!(faults.is_empty(), "decisions that do not begin as the others do:\n{}", faults.join("\n"));
}

#[test]
fn a_decision_that_begins_otherwise_is_found() {
    let file = folder().join("2026-11-21-clones.md");
    let fault = |title: &str, status: &str| fault(&file, &format!("{title}\n\n{status}\n\nText.\n"));
    let title = "# 2026-11-21 · Clones";
    assert_eq!(fault(title, "**Status: in force.** In short: clones."), None);
    assert_eq!(fault("# Clones", "**Status: in force.** In short: clones."), Some("no date in its title"));
    assert_eq!(fault(title, "**Decided.** Clones."), Some("no status on line 3"));
    assert_eq!(fault(title, "**Status: in force.** Clones."), Some("no summary (`In short: ...`)"));
    let by = |other: &str| fault(title, &format!("**Status: amended by [it]({other})**. In short: clones."));
    assert_eq!(by("../format.md"), None);
    assert_eq!(by("../nowhere.md"), Some("what amends or supersedes it is no file"));
    assert_eq!(by("2026-11-30-lists-once.md"), Some("what amends or supersedes it does not say so"));
}

/// What is wrong at the head of a decision.
fn fault(file: &Path, text: &str) -> Option<&'static str> {
    let head: Vec<&str> = text.split("\n\n").take(2).collect();
    let date = name(file).chars().take("2026-11-21".len()).collect::<String>();
    let [title, head] = head[..] else { return Some("no status on line 3") };
    let Some(status) = head.strip_prefix("**Status: ") else { return Some("no status on line 3") };
    if title.contains('\n') || !title.starts_with(&format!("# {date} · ")) {
        return Some("no date in its title");
    }
    if !status.contains("In short: ") {
        return Some("no summary (`In short: ...`)");
    }
    if status.starts_with("in force.** ") { None } else { fault_of_other(file, status) }
}

/// What is wrong with the decision or page that a status names as the later one.
fn fault_of_other(file: &Path, status: &str) -> Option<&'static str> {
    let named = status.strip_prefix("amended by [").or_else(|| status.strip_prefix("superseded by ["));
    let path = named.and_then(|named| Some(named.split_once("](")?.1.split_once(")**")?.0));
    let Some(path) = path else { return Some("neither in force nor amended or superseded by a file") };
    let other = folder().join(path);
    if !other.is_file() {
        return Some("what amends or supersedes it is no file");
    }
    let is_decision = !path.contains('/');
    let says_so = !is_decision || read(&other).contains(&name(file));
    (!says_so).then_some("what amends or supersedes it does not say so")
}

fn decisions() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs").join("decisions")
}

fn name(file: &Path) -> String {
    file.file_name().unwrap().to_str().unwrap().to_owned()
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}
