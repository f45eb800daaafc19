//! A cell of two Andrew servers on one host: each subcommand of `andrew vos` reaches the server that was named, and the
//! location database and the servers agree afterwards. Takes some seconds.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::process::Output;

use andrew_tests::live::cell::{Cell, CellOptions, andrew, command, try_command};
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::Daemon;
use andrew_tests::live::scratch::Scratch;
use serde_json::Value;

const FIRST: &str = "127.0.0.1";
const SECOND: &str = "127.0.0.2";

/// TwoServers servers, the first of which has the databases.
struct TwoServers {
    first: Cell,
    second: Daemon,
    netns: Netns,
}

impl TwoServers {
    /// `name` is that of the test: tests run side by side.
    fn new(name: &str, folder: &Path) -> Self {
        let netns = Netns::fresh(name);
        let first = Cell::serve(&netns, folder, &CellOptions::at(FIRST, "rl"));
        let (state, join) = (shown(first.state()), shown(&folder.join("join.toml")));
        let add =
            ["server", "add", "--state", &state, "--listen", SECOND, "--roles", "files", "--out", &join];
        let _ = command(&netns, &add);
        let mut serve = netns.command(andrew());
        serve.args(["serve", "--join", &join, "--state"]).arg(folder.join("second"));
        let mut second = Daemon::start(serve, &folder.join("second.log"));
        wait_for_word(&mut second, "its state is in");
        Self { first, second, netns }
    }

    fn try_vos(&self, words: &str) -> Output {
        let state = shown(self.first.state());
        let mut all = vec!["vos", "--state", &state];
        all.extend(words.split(' '));
        try_command(&self.netns, &all)
    }

    fn vos(&self, words: &str) -> String {
        let output = self.try_vos(words);
        let said = String::from_utf8(output.stdout).unwrap();
        let wrong = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "vos {words}: {said}{wrong}");
        said
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_str(&self.vos(&format!("--json {words}"))).unwrap()
    }

    fn refused(&self, words: &str) -> String {
        let output = self.try_vos(words);
        assert!(!output.status.success(), "vos {words} should be refused");
        String::from_utf8(output.stderr).unwrap()
    }

    /// Names of the volumes on a server.
    fn volumes(&self, server: &str) -> Vec<String> {
        let listed = self.json(&format!("listvol {server}"));
        let names = |partition: &Value| -> Vec<String> {
            assert_eq!(partition["server"], server);
            let volumes = partition["volumes"].as_array().unwrap();
            volumes.iter().map(|v| v["name"].as_str().unwrap().to_owned()).collect()
        };
        listed.as_array().unwrap().iter().flat_map(names).collect()
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn each_word_reaches_the_server_that_was_named() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers");
    let two = TwoServers::new("two-words", scratch.path());
    let said = two.vos(&format!("create {FIRST} a one"));
    assert!(said.ends_with(&format!("created on partition /vicepa of {FIRST}\n")), "{said}");
    two.vos(&format!("create -server {SECOND} -partition a -name two -maxquota 321"));
    // A name without a server means the server that runs on the state directory.
    two.vos("create own");
    assert!(two.volumes(FIRST).ends_with(&[
        "one".into(),
        "own".into(),
        "root.afs".into(),
        "root.cell".into()
    ]));
    assert_eq!(two.volumes(SECOND), ["two"]);
    assert_eq!(two.json("listvol")[0]["server"], FIRST);

    let examined = two.json("examine two");
    assert_eq!(examined["volumes"][0]["server"], SECOND);
    assert_eq!(examined["volumes"][0]["quota_bytes"], 321 * 1024);
    assert_eq!(examined["entry"]["sites"][0]["server"], SECOND);
    let of_second = two.json(&format!("listvldb -server {SECOND}"));
    assert_eq!(of_second.as_array().unwrap().len(), 1);
    for server in [FIRST, SECOND, "localhost"] {
        assert!(two.vos(&format!("partinfo {server} a")).starts_with("Free space on partition /vicepa: "));
    }
    assert_eq!(two.vos(&format!("status {SECOND}")), format!("No active transactions on {SECOND}\n"));
    assert!(
        two.refused(&format!("listvol {SECOND} b")).contains("partition 'b' does not exist on 127.0.0.2")
    );
    // From the other host, which has no databases, all servers are reached as well.
    let second = shown(&scratch.path().join("second"));
    let from_second =
        |words: &[&str]| command(&two.netns, &[&["vos", "--state", second.as_str()], words].concat());
    assert!(from_second(&["listvol"]).contains(&format!("server {SECOND} partition /vicepa: 1 ")));
    assert!(from_second(&["listvol", FIRST]).contains("root.cell"));
    assert!(from_second(&["create", "three"]).ends_with(&format!("/vicepa of {SECOND}\n")));
    assert!(from_second(&["examine", "one"]).contains(&format!("    {FIRST} /vicepa ")));
    // No server runs there.
    assert!(two.refused("partinfo 127.0.0.3").contains("127.0.0.3"));
}

#[test]
fn down_of_one_server_of_two_is_not_that_of_the_cell() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-down");
    let both = TwoServers::new("andrew-two-down", scratch.path());
    let down = |state: &Path| command(&both.netns, &["down", "--state", &shown(state)]);
    let said = down(&scratch.path().join("second"));
    assert!(
        said.contains("server 127.0.0.2 of cell live.test is down") && said.contains("127.0.0.1:"),
        "{said}"
    );
    let said = down(both.first.state());
    assert!(
        said.contains("server 127.0.0.1 of cell live.test is down") && said.contains("127.0.0.2:"),
        "{said}"
    );
}

#[test]
fn a_removed_volume_is_gone_from_its_server_and_from_the_database() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers-remove");
    let two = TwoServers::new("two-remove", scratch.path());
    for (name, server) in [("one", FIRST), ("two", SECOND)] {
        two.vos(&format!("create {server} a {name}"));
        two.vos(&format!("backup {name}"));
    }
    let wrong = two.refused(&format!("remove {FIRST} a two"));
    assert!(wrong.contains("the VLDB does not have it on 127.0.0.1 /vicepa"), "{wrong}");
    // One copy, after which it cannot be removed again.
    two.vos("remove two.backup");
    assert_eq!(two.volumes(SECOND), ["two"]);
    assert_eq!(two.json("examine two")["entry"]["backup_id"], Value::Null);
    assert!(two.refused("remove two.backup").contains("neither in the VLDB nor on"));

    two.vos(&format!("addsite {SECOND} a one"));
    two.vos("release one");
    assert_eq!(two.volumes(SECOND), ["one.readonly", "two"]);
    let left = two.json("remove one");
    assert_eq!(left["copies_remain"], true);
    assert_eq!(two.volumes(FIRST), ["root.afs", "root.cell"]);
    let entry = &two.json("examine one.readonly")["entry"];
    assert_eq!((&entry["read_write_id"], &entry["backup_id"]), (&Value::Null, &Value::Null));
    two.vos(&format!("remove {SECOND} a one.readonly"));
    two.vos("remove two");
    assert_eq!(two.volumes(SECOND), Vec::<String>::new());
    let names: Vec<Value> =
        two.json("listvldb").as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["root.afs", "root.cell"]);
}

/// A volume that only its server has is removed by partition and number.
#[test]
fn a_volume_without_an_entry_is_removed_where_it_is() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers-orphan");
    let two = TwoServers::new("two-orphan", scratch.path());
    two.vos(&format!("create {SECOND} a two"));
    let id = 600_000_000;
    two.vos(&format!("shadow -id two -toserver {FIRST} -topartition a -toname copy -toid {id}"));
    assert!(two.volumes(FIRST).contains(&"copy".to_owned()));
    assert!(two.refused(&format!("remove {id}")).contains("it is not in the VLDB"));
    assert!(two.refused(&format!("remove {SECOND} a {id}")).contains("neither in the VLDB nor on"));
    two.vos(&format!("remove {FIRST} a {id}"));
    assert_eq!(two.volumes(FIRST), ["root.afs", "root.cell"]);
}

/// Each damage is reported, and a report changes nothing; a repair fixes what it can, and names the command for the
/// rest.
#[test]
fn a_check_finds_what_does_not_fit_and_mends_it() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers-check");
    let two = TwoServers::new("two-check", scratch.path());
    for name in ["gone", "strayed", "replicated", "kept", "locked"] {
        two.vos(&format!("create {FIRST} a {name}"));
    }
    two.vos(&format!("addsite {SECOND} a replicated"));
    two.vos("release replicated");
    two.vos("backup kept");
    two.vos("snapshot create kept monday");
    let clean = two.json("check");
    assert_eq!((&clean["findings"], &clean["servers"]), (&Value::Array(Vec::new()), &Value::from(2)));
    assert!(two.vos("check").ends_with("all is well\n"));

    // Damage on one side only, made by subcommands that do not look at the other.
    let id = |name: &str| two.json(&format!("examine {name}"))["entry"]["read_write_id"].as_u64().unwrap();
    let copy = two.json("examine replicated")["entry"]["read_only_id"].as_u64().unwrap();
    two.vos(&format!("zap {FIRST} a {}", id("gone")));
    two.vos(&format!("changeloc {SECOND} a strayed"));
    two.vos(&format!("zap {SECOND} a {copy}"));
    two.vos(&format!("shadow -id kept -toserver {SECOND} -topartition a -toname found -toid 600000000"));
    two.vos("lock locked");

    let found = |words: &str| -> Vec<(String, String)> {
        let output = two.try_vos(&format!("--json {words}"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let one = |f: &Value, key: &str| f[key].as_str().unwrap().to_owned();
        let mut all: Vec<_> = said["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| (one(f, "fault"), one(f, "remedy")))
            .collect();
        all.sort();
        all
    };
    let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    };
    let wrong = [
        ("counter", "repair"),
        ("elsewhere", "repair"),
        ("lock", "person"),
        // A copy waits for a release; a read-write volume is not dropped.
        ("missing", "person"),
        ("missing", "repair"),
        ("no-entry", "repair"),
    ];
    let before = two.json("listvldb");
    assert_eq!(found("check"), pairs(&wrong));
    assert_eq!(found("check"), pairs(&wrong), "a look changes nothing");
    assert_eq!(two.json("listvldb"), before);
    let of_second = found(&format!("syncserv -server {SECOND} -dryrun"));
    assert!(of_second.contains(&("missing".into(), "repair".into())), "{of_second:?}");

    let mut mended = wrong.map(|(fault, remedy)| (fault, if remedy == "repair" { "mended" } else { remedy }));
    mended.sort_unstable();
    assert_eq!(found("check --repair"), pairs(&mended));
    assert_eq!(found("check"), pairs(&[("lock", "person"), ("missing", "person")]));
    assert_eq!(found("check --repair --lost gone"), pairs(&[("lock", "person"), ("missing", "mended")]));
    assert_eq!(found("check"), pairs(&[("lock", "person")]));
    let told = String::from_utf8(two.try_vos("check").stdout).unwrap();
    assert!(told.contains("decide, and run: andrew vos unlock locked"), "{told}");
    assert!(two.vos("examine locked").contains("by no operation in the journal; `andrew vos unlock locked`"));
    two.vos("unlock locked");
    two.vos("check");

    assert!(two.refused("examine gone").contains("not in the VLDB"));
    assert_eq!(two.json("examine strayed")["volumes"][0]["server"], FIRST);
    assert_eq!(two.json("examine found")["volumes"][0]["server"], SECOND);
    two.vos("release replicated");
    assert!(two.volumes(SECOND).contains(&"replicated.readonly".to_owned()));
    assert!(two.json("create new")["id"].as_u64().unwrap() > 600_000_000);
}

/// Volumes on a server that does not reply are left alone.
#[test]
fn a_check_leaves_alone_what_it_cannot_see() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers-away");
    let mut two = TwoServers::new("two-away", scratch.path());
    two.vos(&format!("create {SECOND} a two"));
    two.second.kill();
    let output = two.try_vos("--json check --repair");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["findings"], Value::Array(Vec::new()));
    assert_eq!(said["silent"][0]["server"], SECOND);
    assert_eq!(two.json("listvldb two")[0]["sites"][0]["server"], SECOND);
}

/// Snapshots are moved with their volume, and a check finds every volume at its site.
#[test]
fn a_move_takes_the_snapshots_along() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let scratch = Scratch::new("two-servers-snapshots");
    let two = TwoServers::new("two-snapshots", scratch.path());
    two.vos(&format!("create {FIRST} a projects"));
    for name in ["monday", "tuesday"] {
        two.vos(&format!("snapshot create projects {name}"));
    }
    let before = two.json("snapshot list projects");
    assert_eq!(before.as_array().unwrap().len(), 2);
    let alone = two.refused(&format!("move projects.monday {SECOND} a"));
    assert!(alone.contains("it is a snapshot of volume"), "{alone}");
    let moved = two.json(&format!("move projects {SECOND} a"));
    assert_eq!(moved["snapshots"], 2);
    assert_eq!(two.json("snapshot list projects"), before);
    assert_eq!(two.volumes(SECOND), ["projects", "projects.monday", "projects.tuesday"]);
    assert_eq!(two.json("examine projects.monday")["entry"]["sites"][0]["server"], SECOND);
    two.vos("check");
    two.vos("snapshot restore projects monday");
    two.vos(&format!("move projects {FIRST} a --drop-snapshots"));
    assert_eq!(two.volumes(SECOND), Vec::<String>::new());
    two.vos("check");
}
