//! `andrew vos check` on a cell of OpenAFS's servers: it reports nothing that is right and everything that is wrong,
//! and repairs it as OpenAFS's own tools would. Takes about a minute.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use andrew_tests::live::cell::andrew;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::scratch::Scratch;
use serde_json::Value;

const CELL: &str = "check.test";
const NUMBER: u8 = 36;

/// A line of OpenAFS's tools, as the cell itself.
fn theirs(hosts: &Hosts, line: &str) -> String {
    let words: Vec<_> = ["vos"].into_iter().chain(line.split(' ')).chain(["-localauth"]).collect();
    hosts.tool("srv1", &words)
}

/// The findings of a line of Andrew's as fault and remedy, sorted. The exit status tells whether there are any.
fn found(hosts: &Hosts, line: &str) -> Vec<(String, String)> {
    let keys = hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt");
    let mut command = hosts.netns("venus").command(andrew());
    command.env("HOME", hosts.state());
    command.args(["vos", "--json", "--servers", &hosts.address(11), "--localauth", "--key-file"]);
    command.arg(keys).args(line.split(' '));
    let output = run_any(command, seconds(120));
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{line}: {error}\n{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(said["silent"], Value::Array(Vec::new()), "{said}");
    assert_eq!(said["servers"], 2, "{said}");
    let one = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
    let all = said["findings"].as_array().unwrap();
    let mut all: Vec<_> = all.iter().map(|f| (one(f, "fault"), one(f, "remedy"))).collect();
    all.sort();
    let bad = all.iter().any(|(_, remedy)| remedy != "mended");
    assert_eq!(output.status.code(), Some(i32::from(bad)), "{said}");
    all
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<_> = all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    all.sort();
    all
}

#[test]
fn a_check_understands_openafs_servers() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-check");
    let hosts = Hosts::with_servers(scratch.path(), NUMBER, CELL);
    for name in ["strayed", "gone", "lost", "replicated", "cloned"] {
        theirs(&hosts, &format!("create srv1 a {name}"));
    }
    for server in ["srv1", "srv2"] {
        theirs(&hosts, &format!("addsite {server} a replicated"));
    }
    theirs(&hosts, "release replicated");
    theirs(&hosts, "backup replicated");
    assert_eq!(found(&hosts, "check"), pairs(&[]));

    theirs(&hosts, "zap srv1 a gone");
    theirs(&hosts, "delentry lost");
    theirs(&hosts, "changeloc srv2 a strayed");
    theirs(&hosts, "zap srv2 a replicated.readonly");
    theirs(&hosts, "clone cloned srv1 a -toname by.hand");
    let wrong = [
        ("elsewhere", "repair"),
        // A read-write volume that is nowhere: its entry goes if it is given up alone.
        ("missing", "person"),
        ("missing", "repair"),
        ("no-entry", "person"),
        ("no-entry", "repair"),
    ];
    let before = theirs(&hosts, "listvldb");
    assert_eq!(found(&hosts, "check"), pairs(&wrong));
    assert_eq!(theirs(&hosts, "listvldb"), before);

    let mended = wrong.map(|(fault, remedy)| (fault, if remedy == "repair" { "mended" } else { remedy }));
    assert_eq!(found(&hosts, "check --repair"), pairs(&mended));
    assert_eq!(
        found(&hosts, "check --repair --lost gone"),
        pairs(&[("missing", "mended"), ("no-entry", "person")])
    );
    assert_eq!(found(&hosts, "check"), pairs(&[("no-entry", "person")]));

    let listed = theirs(&hosts, "listvldb");
    let names: Vec<_> = listed.lines().map(str::trim).collect();
    assert!(names.contains(&"lost") && !names.contains(&"gone"), "{listed}");
    assert!(theirs(&hosts, "examine strayed").contains("On-line"));
    assert!(theirs(&hosts, "examine replicated").contains("RO Site  -- Not released"));
    theirs(&hosts, "release replicated");
    assert!(theirs(&hosts, "listvol srv2").contains("replicated.readonly"));
    assert_eq!(found(&hosts, "check"), pairs(&[("no-entry", "person")]));
}
