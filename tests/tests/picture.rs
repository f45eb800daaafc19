//! Compares the crate picture of `ARCHITECTURE.md` with cargo's metadata and with the sources.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn cargo_agrees_with_the_table() {
    let table = table();
    let real = dependencies();
    for (name, uses) in &real {
        let allowed =
            table.get(name).unwrap_or_else(|| panic!("{name} is missing from the table in ARCHITECTURE.md"));
        for used in uses {
            let fine = match allowed {
                Allowed::These(these) => these.contains(used),
                Allowed::AllBut(these) => !these.contains(used),
            };
            assert!(fine, "{name} uses {used}, which the table in ARCHITECTURE.md does not allow");
        }
    }
    for name in table.keys() {
        assert!(real.contains_key(name), "ARCHITECTURE.md names {name}, which is no crate of the workspace");
    }
}

#[test]
fn one_crate_names_the_fuse_binding_and_one_the_embedded_store() {
    for (library, owners) in [
        ("fuser", &["afs-fuse"][..]),
        ("redb", &["afs-kv"][..]),
        ("quinn-udp", &["afs-net"][..]),
        ("hyper", &["afs-etcd", "afs-s3"][..]),
        ("object_store", &["afs-s3"][..]),
    ] {
        let mut named: Vec<String> = packages()
            .iter()
            .filter(|package| shipped(package).any(|dependency| dependency["name"] == library))
            .map(|package| text(&package["name"]))
            .collect();
        named.sort();
        assert_eq!(named, owners, "{library} belongs to {owners:?} alone");
    }
}

/// Tokio's locks and traits need no runtime. Features that need one belong to the crates with sockets.
#[test]
fn three_crates_have_a_runtime() {
    let needs_none = ["sync", "io-util"];
    let mut named: Vec<String> = packages()
        .iter()
        .filter(|package| shipped(package).any(|uses| uses["name"] == "tokio" && !within(uses, &needs_none)))
        .map(|package| text(&package["name"]))
        .collect();
    named.sort();
    assert_eq!(named, ["afs-etcd", "afs-net", "afs-s3"]);
}

/// Whether no other features of a dependency are enabled.
fn within(dependency: &serde_json::Value, features: &[&str]) -> bool {
    let on = dependency["features"].as_array().into_iter().flatten();
    dependency["uses_default_features"] == false
        && on.into_iter().all(|feature| feature.as_str().is_some_and(|feature| features.contains(&feature)))
}

/// What `andrew` is built from has neither the simulator nor the test kit in it.
#[test]
fn the_simulator_and_the_test_kit_are_for_tests_alone() {
    for (tool, users) in
        [("afs-testkit", &["andrew-tests"][..]), ("afs-sim", &["afs-testkit", "andrew-tests"])]
    {
        for package in packages() {
            let name = text(&package["name"]);
            let uses = shipped(&package).any(|dependency| dependency["name"] == tool);
            assert!(!uses || users.contains(&name.as_str()), "{name} uses {tool}, which is for tests");
        }
    }
}

/// Clippy holds every crate to `clippy.toml`, except those that have a file of their own.
#[test]
fn these_crates_alone_may_reach_outside() {
    let has_its_own = |package: &&serde_json::Value| {
        Path::new(&text(&package["manifest_path"])).with_file_name("clippy.toml").exists()
    };
    let packages = packages();
    let mut named: Vec<String> = packages.iter().filter(has_its_own).map(|p| text(&p["name"])).collect();
    named.sort();
    assert_eq!(
        named,
        [
            "afs-cell",
            "afs-etcd",
            "afs-fuse",
            "afs-krb5",
            "afs-lab",
            "afs-net",
            "afs-s3",
            "andrew",
            "andrew-tests"
        ]
    );
}

#[test]
fn crates_stand_in_the_folders_of_their_sides_and_use_no_side_below() {
    let sides = sides();
    let side_of: BTreeMap<&str, usize> = sides
        .iter()
        .enumerate()
        .flat_map(|(at, (_, crates))| crates.iter().map(move |it| (it.as_str(), at)))
        .collect();
    for package in packages().iter().filter(|package| package["name"] != "andrew-tests") {
        let (name, manifest) = (text(&package["name"]), text(&package["manifest_path"]));
        let at =
            side_of.get(name.as_str()).unwrap_or_else(|| panic!("{name} is on no side in ARCHITECTURE.md"));
        let stands = Path::new("crates").join(&sides[*at].0).join(&name).join("Cargo.toml");
        assert!(Path::new(&manifest).ends_with(&stands), "{manifest} is not {}", stands.display());
    }
    for (name, uses) in &dependencies() {
        let below = |used: &&String| side_of.get(used.as_str()) > side_of.get(name.as_str());
        let wrong: Vec<_> = uses.iter().filter(below).collect();
        assert!(name == "andrew-tests" || wrong.is_empty(), "{name} uses {wrong:?}, on sides below its own");
    }
}

/// The sides in `ARCHITECTURE.md`, in order, with their crates.
fn sides() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().skip_while(|line| !line.starts_with("| Side |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|row| {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            (cells[1].to_owned(), cells[2].split(", ").map(str::to_owned).collect())
        })
        .collect()
}

enum Allowed {
    These(BTreeSet<String>),
    AllBut(BTreeSet<String>),
}

/// The table of `ARCHITECTURE.md`: each crate and its allowed dependencies.
fn table() -> BTreeMap<String, Allowed> {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| a"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let names =
            |text: &str| text.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let allowed = match cells[2] {
            "all" => Allowed::AllBut(BTreeSet::new()),
            list => match list.strip_prefix("all but ") {
                Some(rest) => Allowed::AllBut(names(rest)),
                None => Allowed::These(names(list)),
            },
        };
        (cells[1].to_owned(), allowed)
    })
    .collect()
}

/// Each crate of the workspace with its dependencies in the workspace (except those of its tests only).
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let packages = packages();
    let ours: BTreeSet<String> = packages.iter().map(|package| text(&package["name"])).collect();
    packages
        .iter()
        .map(|package| {
            let uses = shipped(package)
                .map(|dependency| text(&dependency["name"]))
                .filter(|name| ours.contains(name));
            (text(&package["name"]), uses.collect())
        })
        .collect()
}

fn shipped(package: &serde_json::Value) -> impl Iterator<Item = &serde_json::Value> {
    package["dependencies"].as_array().into_iter().flatten().filter(|dependency| dependency["kind"].is_null())
}

fn packages() -> Vec<serde_json::Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
