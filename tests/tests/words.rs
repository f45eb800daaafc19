//! Names of types, functions and files that have a word which the glossary replaces: as many as `tests/words.toml` says, or fewer.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use andrew_tests::sources::{Source, sources};

/// What stands before the name of a type or function.
const KEYWORDS: [&str; 6] = ["fn", "struct", "enum", "trait", "type", "union"];

#[test]
fn no_name_has_a_word_that_the_glossary_replaces() {
    let replaced = replaced_words(&page("docs/glossary.md"));
    assert!(replaced.len() > 20, "only {} words were found", replaced.len());
    let at_most: BTreeMap<String, usize> = toml::from_str(&page("tests/words.toml")).unwrap();
    let names: Vec<String> = sources().iter().flat_map(names_of).collect();
    assert!(names.len() > 10_000, "only {} names were found", names.len());
    let found = count(&replaced, &names);
    let faults = faults(&found, &at_most);
    assert!(faults.is_empty(), "docs/glossary.md says which words to use instead:\n{}", faults.join("\n"));
    for (word, fewer) in &at_most {
        match found.get(word).map(Vec::len) {
            None => panic!("tests/words.toml: the glossary replaces no word {word}: take it out"),
            Some(now) if now < *fewer => println!("tests/words.toml: {word} = {now} now, write it there"),
            Some(_) => {}
        }
    }
}

#[test]
fn a_name_with_such_a_word_is_found() {
    let table =
        "| Term | Meaning | Not |\n| --- | --- | --- |\n| route | How `x` | `way`, `go_by`, what |\n`no`";
    let replaced = replaced_words(table);
    assert_eq!(replaced, BTreeSet::from(["go_by".to_owned(), "way".to_owned()]));
    let code = "pub(crate) struct WayOut; // fn way()\nfn ways() { say(\"a type Way\") }\nfn always_go_by() {}\n\
        #[test]\nfn its_way() {}\nasync fn away() {}\n";
    let source = Source { path: "afs-x/src/long_way/mod.rs".to_owned(), code: code.to_owned() };
    let names: Vec<String> = names_of(&source).collect();
    assert_eq!(names, ["long_way", "WayOut", "ways", "always_go_by", "away"]);
    let found = count(&replaced, &names);
    assert_eq!(found["way"], ["long_way", "WayOut", "ways"]);
    assert_eq!(found["go_by"], ["always_go_by"]);
    let at_most = |ways| BTreeMap::from([("way".to_owned(), ways), ("go_by".to_owned(), 1)]);
    assert!(faults(&found, &at_most(3)).is_empty());
    assert_eq!(faults(&found, &at_most(2)), ["way: 3 names, at most 2: long_way WayOut ways"]);
}

/// The words between backticks in the last column of the glossary's tables.
fn replaced_words(glossary: &str) -> BTreeSet<String> {
    let rows = glossary.lines().filter(|line| line.starts_with("| "));
    let last = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    last.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The names of a file, its types and its functions. Those of tests are sentences, and not counted.
fn names_of(source: &Source) -> impl Iterator<Item = String> {
    let mut names: Vec<String> = file_name(&source.path).into_iter().map(str::to_owned).collect();
    let mut is_test = false;
    for line in source.code.lines() {
        if !is_test {
            names.extend(defined(line));
        }
        is_test = line.trim() == "#[test]";
    }
    names.into_iter()
}

/// What a file is called; `mod.rs` after its folder, and the root of a crate not at all.
fn file_name(path: &str) -> Option<&str> {
    let mut parts = path.trim_end_matches(".rs").rsplit('/');
    match parts.next()? {
        "mod" => parts.next(),
        "lib" | "main" => None,
        stem => Some(stem),
    }
}

/// The names that a line defines, before its first comment or string.
fn defined(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default().split('"').next().unwrap_or_default();
    let words = code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let pairs = words.windows(2).filter(|pair| KEYWORDS.contains(&pair[0]));
    pairs.map(|pair| pair[1].to_owned()).collect()
}

/// For each word, the names that have it.
fn count<'n>(replaced: &BTreeSet<String>, names: &'n [String]) -> BTreeMap<String, Vec<&'n str>> {
    let split: Vec<(&str, String)> = names.iter().map(|name| (name.as_str(), in_words(name))).collect();
    let with = |word: &String| {
        let forms = [format!("_{word}_"), format!("_{word}s_")];
        let has = |words: &String| forms.iter().any(|form| words.contains(form.as_str()));
        split.iter().filter(|(_, words)| has(words)).map(|(name, _)| *name).collect()
    };
    replaced.iter().map(|word| (word.clone(), with(word))).collect()
}

/// A name in small letters, with `_` before, between and after its words.
fn in_words(name: &str) -> String {
    let mut words = "_".to_owned();
    let mut was_capital = true;
    for c in name.chars() {
        if c.is_uppercase() && !was_capital {
            words.push('_');
        }
        was_capital = c.is_uppercase() || c == '_';
        words.extend(c.to_lowercase());
    }
    words.push('_');
    words
}

/// Words that more names have than before.
fn faults(found: &BTreeMap<String, Vec<&str>>, at_most: &BTreeMap<String, usize>) -> Vec<String> {
    let more = found.iter().filter_map(|(word, names)| {
        let most = at_most.get(word).copied().unwrap_or_default();
        let text = || format!("{word}: {} names, at most {most}: {}", names.len(), names.join(" "));
        (names.len() > most).then(text)
    });
    more.collect()
}

fn page(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(path)).unwrap()
}
