//! Table of kinds of files and damages, as `docs/format.md` has it under "Damaged files".

use std::fs;

use andrew_tests::live::needs::root;

use crate::damaged_files::damage::Damage;

/// What the table says of a kind of file and a damage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The start is refused, and names the file.
    Refused,
    /// The start succeeds, and names the file in its log.
    Lost,
    /// Nothing is lost.
    Anew,
    /// Something may be lost in silence.
    Unnoticed,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// Patterns of paths, with one `*` in a name at most.
    pub patterns: Vec<String>,
    /// Without those that do not apply.
    pub outcomes: Vec<(Damage, Outcome)>,
}

/// Reads the table.
pub fn read() -> Vec<Row> {
    let page = fs::read_to_string(root().join("docs/format.md")).unwrap();
    let (_, rest) = page.split_once("\n## Damaged files\n").expect("the section");
    let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
    let mut lines = section.lines().filter(|line| line.starts_with('|')).map(cells);
    let head = lines.next().expect("a head");
    let damages: Vec<Damage> = head[1..head.len() - 1]
        .iter()
        .map(|word| Damage::parse(word).unwrap_or_else(|| panic!("{word}")))
        .collect();
    assert_eq!(damages, Damage::ALL, "all damages are in the table");
    lines.skip(1).map(|cells| row(&cells)).collect()
}

fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn row(cells: &[&str]) -> Row {
    assert_eq!(cells.len(), Damage::ALL.len() + 2, "{cells:?}");
    let patterns = cells[0].split(", ").map(|name| name.trim_matches('`').to_owned()).collect();
    let outcomes = Damage::ALL.into_iter().zip(&cells[1..]);
    let outcomes = outcomes.filter_map(|(damage, word)| Some((damage, outcome(word)?))).collect();
    assert!(!cells[cells.len() - 1].is_empty(), "{}: the reason", cells[0]);
    Row { patterns, outcomes }
}

fn outcome(word: &str) -> Option<Outcome> {
    Some(match word {
        "refused" => Outcome::Refused,
        "lost" => Outcome::Lost,
        "anew" => Outcome::Anew,
        "unnoticed" => Outcome::Unnoticed,
        "-" => return None,
        _ => panic!("no such outcome: {word}"),
    })
}

/// Whether a path, as the table writes it, is one of a pattern.
pub fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) = (pattern.split('/').collect(), path.split('/').collect());
    let is_named = |(pattern, name): (&&str, &&str)| match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.starts_with(before) && name[before.len()..].ends_with(after),
    };
    pattern.len() == path.len() && pattern.iter().zip(&path).all(is_named)
}

#[test]
fn patterns_are_of_names() {
    assert!(matches("DRIVE/store-*/*.seg", "DRIVE/store-0/0000000100000000.seg"));
    assert!(
        !matches("DRIVE/store-*/*.seg", "DRIVE/store-0/lock") && !matches("DRIVE/*", "DRIVE/store-0/lock")
    );
    assert!(
        matches("CACHE/files/unsaved/*", "CACHE/files/unsaved/1") && !matches("STATE/lock", "CACHE/lock")
    );
}
