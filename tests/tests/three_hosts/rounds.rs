//! One host is lost, the others continue, and it returns.

use std::fs;
use std::path::Path;
use std::time::Instant;

use andrew_tests::live::bridge::Bridge;
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::residents::RESIDENT;
use andrew_tests::live::wait::{until, until_equal};

use super::cell::{ThreeHosts, told, udebug};
use super::reader::Reader;

/// How a host is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Its etcd and its `andrew serve` are killed.
    Killed,
    /// None of its packets arrives anywhere, and none arrives at it.
    CutOff,
}

const PORTS: [&str; 2] = ["7002", "7003"];

/// Loses one host, and restores it.
pub fn lose(cell: &mut ThreeHosts, bridge: &Bridge, victim: usize, loss: Loss) {
    let began = Instant::now();
    let reader = start_reader(cell);
    reader.wait_for_more();
    match loss {
        Loss::Killed => cell.servers[victim].kill(),
        Loss::CutOff => cell.servers[victim].host.cut_off(),
    }
    reader.wait_for_more();
    eprintln!("{loss:?} {victim}: read after {:.1?}", began.elapsed());
    others_go_on(cell, victim);
    eprintln!("{loss:?} {victim}: others done after {:.1?}", began.elapsed());
    if loss == Loss::CutOff {
        // The volume tools try the other hosts too before they give up, which takes time: once is enough.
        alone_it_refuses(cell, victim);
        eprintln!("{loss:?} {victim}: alone done after {:.1?}", began.elapsed());
    }
    match loss {
        Loss::Killed => cell.servers[victim].again(),
        Loss::CutOff => cell.servers[victim].host.mend(bridge),
    }
    it_catches_up(cell, victim);
    cell.residents.check();
    reader.wait_for_more();
    reader.finish();
    eprintln!("{loss:?} {victim}: back after {:.1?}", began.elapsed());
}

/// A reader of the replicated volume.
pub(super) fn start_reader(cell: &ThreeHosts) -> Reader {
    let flush = |home: std::path::PathBuf| {
        move |path: &Path| {
            let mut command = Netns::machine().command(andrew_tests::live::cell::andrew());
            command.env("HOME", &home).args(["fs", "flush"]).arg(path);
            let flushed = run_any(command, seconds(60));
            assert!(flushed.status.success(), "{}", String::from_utf8_lossy(&flushed.stderr));
        }
    };
    Reader::start(cell.mount.path().join("replicated"), flush(cell.client.home.clone()))
}

/// Every operation that does not need the lost host.
fn others_go_on(cell: &ThreeHosts, victim: usize) {
    let (one, two) = ((victim + 1) % 3, (victim + 2) % 3);
    for other in [one, two] {
        let file = cell.mount.path().join(format!("on1{}", other + 1)).join(format!("without-{victim}"));
        fs::write(&file, format!("{other}")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{other}"));
    }
    let name = format!("made{victim}");
    let [here, there] = [one, two].map(|other| cell.servers[other].address().to_owned());
    let vos = |words: &[&str]| cell.change(one, &[&["vos"], words].concat());
    let pts = |words: &[&str]| cell.change(two, &[&["pts"], words].concat());
    vos(&["create", &here, "a", &name]);
    vos(&["move", &name, &there, "a"]);
    vos(&["backup", &name]);
    for site in [&here, &there] {
        vos(&["addsite", site, "a", &name]);
    }
    vos(&["release", &name]);
    pts(&["createuser", &format!("user{victim}")]);
    pts(&["creategroup", &format!("group{victim}")]);
    pts(&["adduser", &format!("user{victim}"), "friends"]);
    assert!(pts(&["membership", "friends"]).contains(&format!("user{victim}")));
    who_leaves_a_group_is_out(cell, one, &pts);
    cell.login();
    for other in [one, two] {
        for port in PORTS {
            let said = udebug(&cell.servers[other], cell.servers[other].address(), port);
            assert!(said.contains("I am sync site"), "{said}");
        }
    }
}

/// A file server follows what other hosts change in etcd: rights that rest on a group end with the membership.
fn who_leaves_a_group_is_out(cell: &ThreeHosts, on: usize, pts: &dyn Fn(&[&str]) -> String) {
    let team = cell.mount.path().join(format!("on1{}/team", on + 1));
    let point = team.to_str().unwrap();
    if !team.exists() {
        fs::create_dir(&team).unwrap();
        cell.client.andrew(&["fs", "setacl", point, "friends", "rl", "system:anyuser", "none"]);
        fs::write(team.join("plan"), "plan").unwrap();
    }
    let can_read = || cell.residents.can(&team, "test \"$(cat $A/plan)\" = plan");
    pts(&["adduser", RESIDENT, "friends"]);
    until("a new member who reads", seconds(60), || can_read().then_some(()));
    assert!(can_read(), "what is cached");
    pts(&["removeuser", RESIDENT, "friends"]);
    until("a former member who reads no more", seconds(60), || (!can_read()).then_some(()));
}

/// A host without a majority serves reads, refuses changes, and gives the reason.
fn alone_it_refuses(cell: &ThreeHosts, victim: usize) {
    let lost = &cell.servers[victim];
    until("a host that knows that it is alone", seconds(60), || {
        udebug(lost, lost.address(), "7003").contains("I am not sync site").then_some(())
    });
    assert!(lost.andrew(&["vos", "listvldb"]).contains("replicated"));
    assert!(lost.andrew(&["pts", "membership", "alice"]).contains("friends"));
    let create = &["vos", "create", "localhost", "a", "alone"][..];
    let of_people = [
        &["pts", "createuser", "alone"][..],
        &["pts", "removeuser", "alice", "system:administrators"],
        &["passwd", "alice", "--passphrase-file", cell.passphrase.to_str().unwrap()],
    ];
    for words in of_people.into_iter().chain((victim == 0).then_some(create)) {
        let refused = lost.try_andrew(words);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{words:?}: {said}");
        assert!(
            said.to_lowercase().contains("no quorum: ") && said.trim_end().lines().count() == 1,
            "{words:?}: {said}"
        );
    }
}

/// The host has all changes, and its volumes are used again.
fn it_catches_up(cell: &ThreeHosts, victim: usize) {
    let said = told(&cell.servers[(victim + 1) % 3]);
    assert!(said.contains(&format!("made{victim}")) && said.contains(&format!("user{victim}")), "{said}");
    for server in &cell.servers {
        until_equal("what a database server says", &said, || told(server));
    }
    let volumes = cell.servers[victim].andrew(&["vos", "listvol", cell.servers[victim].address()]);
    let root = volumes.lines().filter(|line| line.starts_with("root.cell ")).count();
    assert_eq!(root, usize::from(victim == 0), "a read-write root.cell where there was none:\n{volumes}");
    let folder = cell.mount.path().join(format!("on1{}", victim + 1));
    let file = folder.join("back");
    until("the host's volume", seconds(120), || fs::write(&file, "back").ok());
    assert_eq!(fs::read_to_string(&file).unwrap(), "back");
    let own = &cell.servers[victim];
    // Once it is the sync site, it takes changes.
    until("a sync site", seconds(60), || {
        PORTS.iter().all(|port| udebug(own, own.address(), port).contains("I am sync site")).then_some(())
    });
    own.andrew(&["vos", "create", "localhost", "a", &format!("own{victim}")]);
    own.andrew(&["pts", "adduser", &format!("user{victim}"), &format!("group{victim}")]);
}
