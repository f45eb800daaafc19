//! Dependencies among the files of this crate: no cycles, and only upwards in the table in `src/lib.rs`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod uses;

use std::collections::BTreeSet;
use std::path::Path;

use uses::Sources;

#[test]
fn no_file_uses_itself_by_way_of_others() {
    let sources = sources();
    let uses = sources.uses();
    assert!(uses.values().map(BTreeSet::len).sum::<usize>() > 100, "the sources could not be read");
    let circles = sources.circles();
    assert!(circles.is_empty(), "files that use one another in a circle: {circles:#?}");
}

#[test]
fn a_module_uses_those_above_it_in_the_table_only() {
    let table = table();
    let place = |module: &str| {
        let found = table.iter().position(|row| row == module);
        found.unwrap_or_else(|| panic!("`{module}` is missing from the table in src/lib.rs"))
    };
    for (file, used) in sources().uses() {
        for used in used.iter().filter(|used| !used.is_empty() && !file.is_empty()) {
            assert!(
                used[0] == file[0] || place(&used[0]) < place(&file[0]),
                "{} uses {}, which stands below it in the table in src/lib.rs",
                file.join("::"),
                used.join("::")
            );
        }
    }
}

#[test]
fn a_circle_is_found_whichever_way_a_use_is_written() {
    let circle = |b: &str| {
        let sources = Sources::new([
            ("", "mod a;\nmod b;"),
            ("a", "mod inner;\npub(crate) use inner::Thing;"),
            ("a::inner", "use crate::b::Other;\npub struct Thing;"),
            ("b", b),
        ]);
        !sources.circles().is_empty()
    };
    assert!(!circle("pub struct Other; // use crate::a::Thing;"));
    assert!(!circle("pub struct Other;\n#[cfg(test)]\nmod tests { use crate::a::Thing; }"));
    assert!(circle("use crate::a::Thing;"));
    assert!(circle("use crate::{a::{Thing as That}, c};"));
    assert!(circle("use super::a::inner;"));
    assert!(circle("fn of(thing: &crate::a::Thing) {}"));
}

/// The modules that the table in `src/lib.rs` names, in its order.
fn table() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("lib.rs")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("//! | "));
    rows.filter_map(|row| Some(row.split('|').next()?.trim().trim_matches(['[', ']', '`']).to_owned()))
        .collect()
}

fn sources() -> Sources {
    Sources::read(&root())
}

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}
