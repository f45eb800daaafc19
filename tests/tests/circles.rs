//! Circles of files that use one another, in each crate: those of `tests/circles.toml`, or smaller ones. And who holds the file server that holds them.

#[path = "../../crates/client/afs-venus/tests/picture/uses.rs"]
mod uses;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use andrew_tests::sources::{files_with, packages};

use uses::{Module, Sources};

/// The circles of a crate: for each the name of one of its files, and how many it has.
type Recorded = BTreeMap<String, usize>;

/// Files that hold a `Weak<FileServer>`: what the file server has, and uses the file server.
const HOLDERS: [&str; 4] = [
    "afs-cell/src/servers/owner_requests.rs",
    "afs-server/src/data_path/objects.rs",
    "afs-server/src/volume_states/mod.rs",
    "afs-server/src/volumes/mod.rs",
];

#[test]
fn no_circle_of_files_appears_or_grows() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("circles.toml");
    let recorded: BTreeMap<String, Recorded> =
        toml::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let mut all = Vec::new();
    for package in packages() {
        let name = package.file_name().unwrap().to_str().unwrap().to_owned();
        let sources = Sources::read(&package.join("src"));
        let recorded = recorded.get(&name).cloned().unwrap_or_default();
        let circles = sources.circles();
        all.extend(faults(&circles, &recorded).into_iter().map(|fault| format!("{name}: {fault}")));
        for notice in smaller(&circles, &recorded) {
            println!("tests/circles.toml: {name}: {notice}");
        }
    }
    assert!(all.is_empty(), "files that use one another in a circle:\n{}", all.join("\n"));
}

#[test]
fn a_circle_that_is_new_or_larger_is_found_and_one_that_is_gone_is_told() {
    let circles = |b: &str| {
        let a = "use crate::b::Other;\npub struct Thing;";
        Sources::new([("", "mod a;\nmod b;\nmod c;"), ("a", a), ("b", b), ("c", "use crate::a::Thing;")])
            .circles()
    };
    let recorded = |files| Recorded::from([("b".to_owned(), files)]);
    let two = circles("use crate::a::Thing;");
    assert_eq!(faults(&two, &Recorded::new()), ["a b: no such circle is in tests/circles.toml"]);
    assert!(faults(&two, &recorded(2)).is_empty() && smaller(&two, &recorded(2)).is_empty());
    let three = circles("use crate::{a::Thing, c::It};");
    assert_eq!(faults(&three, &recorded(2)), ["a b c: 3 files, at most 2"]);
    assert_eq!(smaller(&two, &recorded(3)), ["b = 2 now, write it there"]);
    assert_eq!(smaller(&circles(""), &recorded(2)), ["b is in no circle now, take it out"]);
}

#[test]
fn no_other_file_holds_the_file_server_by_a_weak_reference() {
    let found = files_with(&[], |code| code.contains("Weak<FileServer>"));
    let others: Vec<&String> = found.iter().filter(|file| !HOLDERS.contains(&file.as_str())).collect();
    assert!(others.is_empty(), "give them what they need of the file server, not itself: {others:?}");
    for file in HOLDERS.iter().filter(|file| !found.iter().any(|found| found == *file)) {
        println!("tests/tests/circles.rs: {file} holds no Weak<FileServer> now, take it out");
    }
}

/// Circles that are not recorded, or have more files.
fn faults(circles: &BTreeSet<BTreeSet<Module>>, recorded: &Recorded) -> Vec<String> {
    let fault = |circle: &BTreeSet<Module>| {
        let files: Vec<String> = circle.iter().map(|file| file.join("::")).collect();
        let most = files.iter().filter_map(|file| recorded.get(file)).max();
        match most {
            None => Some(format!("{}: no such circle is in tests/circles.toml", files.join(" "))),
            Some(most) if files.len() > *most => {
                Some(format!("{}: {} files, at most {most}", files.join(" "), files.len()))
            }
            Some(_) => None,
        }
    };
    circles.iter().filter_map(fault).collect()
}

/// Recorded circles that are gone, or have fewer files.
fn smaller(circles: &BTreeSet<BTreeSet<Module>>, recorded: &Recorded) -> Vec<String> {
    let notice = |(file, files): (&String, &usize)| {
        let module: Module = file.split("::").map(str::to_owned).collect();
        let now = circles.iter().find(|circle| circle.contains(&module)).map(BTreeSet::len);
        match now {
            None => Some(format!("{file} is in no circle now, take it out")),
            Some(now) if now < *files => Some(format!("{file} = {now} now, write it there")),
            Some(_) => None,
        }
    };
    recorded.iter().filter_map(notice).collect()
}
