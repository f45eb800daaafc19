//! create, remove, rename, setfields, online, offline, the lists, locks, status, endtrans, zap, and the subcommands
//! that compare servers with the location database.

use std::process::Command;

use andrew_tests::live::manifest::{assert_same, manifest, quota};
use andrew_tests::live::pair::Pair;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::wait::until;

use super::pair;

#[test]
fn volumes_are_made_shown_set_and_removed() {
    let Some(pair) = pair("openafs-vos-tables") else { return };
    let (point, wanted) = pair.volume_with_tree("v", "ONE a");
    let id = number_of(&pair, "v");
    lists(&pair, &id);

    pair.vos("setfields v -maxquota 54321 -clearuse");
    let examined = pair.vos("examine v");
    assert!(examined.contains("\n    0 accesses in the past day"), "{examined}");
    assert_eq!(quota(&point).0, 54_321);
    pair.vos("rename v renamed");
    assert!(pair.vos("listvol ONE a").contains("renamed  ") && !pair.vos("listvldb").contains("\nv "));
    assert_same("under its new name", &wanted, &manifest(&pair.mounted("renamed")));
    pair.vos("rename renamed v");

    pair.vos("offline ONE a v");
    assert!(pair.vos("listvol ONE a").contains("Off-line"));
    pair.vos("online ONE a v");
    assert!(pair.vos("examine v").contains("On-line"));
    assert_same("on line again", &wanted, &manifest(&point));
    transactions(&pair);
    assert_same("after a transaction that somebody else ended", &wanted, &manifest(&point));

    database_and_servers(&pair, &id);
    assert_same("found by its server", &wanted, &manifest(&point));
    addresses(&pair);

    pair.vos("create ONE b spare -id 620000000");
    assert!(pair.vos_refused("create ONE b spare").contains("already exists"));
    pair.vos("remove -id spare");
    assert!(!pair.vos("listvldb").contains("spare") && !pair.vos("listvol ONE b").contains("spare"));
    pair.vos("remove ONE a v");
    assert!(pair.vos_refused("examine v").contains("no such entry"));
    assert!(std::fs::read_dir(&point).is_err(), "it can still be read");
}

fn number_of(pair: &Pair, volume: &str) -> String {
    let said = pair.vos(&format!("examine {volume} -format"));
    let line = said.lines().find(|line| line.starts_with("id")).unwrap();
    line.split_whitespace().last().unwrap().to_owned()
}

fn lists(pair: &Pair, id: &str) {
    let long = pair.vos("listvol ONE a -long");
    for said in ["MaxQuota     100000 K", "/vicepa", "On-line", "accesses in the past day"] {
        assert!(long.contains(said), "{long}");
    }
    let format = pair.vos("listvol ONE a -format");
    for said in ["name\t\tv\n", "status\t\tOK\n", "inUse\t\tY\n", "type\t\tRW\n", "maxquota\t100000\n"] {
        assert!(format.contains(said), "{said:?} is not in {format}");
    }
    assert!(pair.vos("listvol ONE a -fast").contains(id));
    assert!(pair.vos("listvol ONE -extended").contains("Raw Read/Write Stats"));
    assert!(pair.vos("listvol ONE b").contains("Total number of volumes on server"));
    assert!(pair.vos("examine v -extended").contains("files"));
    assert!(pair.vos("listvldb -name v -quiet").contains(&format!("RWrite: {id}")));
    assert!(pair.vos("listvldb -server ONE -partition a").contains("Total entries: 3"));
    assert!(pair.vos("listvldb -server TWO").contains("Total entries: 1"), "the resident's");
    assert!(pair.vos("partinfo TWO b").contains("Free space on partition /vicepb: "));
    let partitions = pair.vos("listpart ONE");
    assert!(partitions.contains("/vicepa     /vicepb") && partitions.contains("Total: 2"), "{partitions}");
    let addresses = pair.vos("listaddrs");
    assert_eq!(addresses, format!("{}\n{}\n", pair.one(), pair.two()));
    assert_eq!(pair.vos("listaddrs -printuuid").matches("UUID: ").count(), 2);
    assert!(pair.vos("status ONE").contains("No active transactions"));
    assert!(pair.vos("size v -dump").contains("dump_size: "));
}

/// A transaction is listed, and ended by another host than the one that began it.
fn transactions(pair: &Pair) {
    let sleeper = format!("vos offline {} a v -sleep 300 -localauth >/dev/null 2>&1 & echo $!", pair.one());
    let pid = pair.hosts().tool("cl1", &["sh", "-c", &sleeper]);
    let number = until("a transaction", seconds(60), || {
        let said = pair.vos("status ONE");
        let line = said.lines().find(|line| line.starts_with("transaction: "))?;
        assert!(said.contains("attachFlags:  offline"), "{said}");
        Some(line.split_whitespace().nth(1)?.to_owned())
    });
    assert!(pair.vos("listvol ONE a").contains("is busy"));
    until("its flags", seconds(60), || pair.vos("status ONE").contains("procedure: SetFlags").then_some(()));
    pair.vos(&format!("endtrans ONE {number}"));
    assert!(pair.vos("status ONE").contains("No active transactions"));
    let mut kill = Command::new("kill");
    kill.arg(pid.trim());
    run(kill, seconds(10));
    pair.vos("online ONE a v");
}

fn database_and_servers(pair: &Pair, id: &str) {
    pair.vos("lock v");
    let locked = pair.vos("listvldb -locked");
    assert!(locked.contains("Volume is currently LOCKED") && locked.contains("Total entries: 1"), "{locked}");
    let _ = pair.vos_refused("rename v other");
    pair.vos("unlock v");
    assert!(pair.vos("listvldb -locked").contains("Total entries: 0"));
    pair.vos("lock v");
    pair.vos("lock root.afs");
    pair.vos("unlockvldb -server ONE");
    assert!(pair.vos("listvldb -locked").contains("Total entries: 0"));

    pair.vos("delentry v");
    assert!(pair.vos_refused("listvldb v").contains("no such entry"));
    pair.vos("syncvldb ONE");
    assert!(pair.vos("listvldb v").contains(&format!("RWrite: {id}")));
    pair.vos("create TWO a lost");
    let lost = number_of(pair, "lost");
    pair.vos(&format!("zap TWO a {lost}"));
    assert!(pair.vos("listvldb lost").contains(&lost));
    pair.vos("syncserv TWO");
    assert!(pair.vos_refused("listvldb lost").contains("no such entry"));
    pair.vos("create TWO a lost");
    pair.vos(&format!("zap TWO a {} -force", number_of(pair, "lost")));
    pair.vos("syncserv TWO");
    assert!(!pair.vos("listvol TWO a").contains("lost"));
}

/// Servers that register themselves must not be renamed by hand.
fn addresses(pair: &Pair) {
    let there = pair.vos("listaddrs");
    let two = pair.two();
    let refused = pair.vos_refused(&format!("changeaddr {two} {}", two.replace(".7", ".77")));
    assert!(refused.contains("multi-homed"), "{refused}");
    assert_eq!(pair.vos("listaddrs"), there);

    // A server that is set by hand, with two addresses, and removed again.
    let (gone, other) = (two.replace(".7", ".77"), two.replace(".7", ".78"));
    let uuid = "00112233-4455-6677-88-99-aabbccddeeff";
    pair.vos(&format!("setaddrs -uuid {uuid} -host {gone} {other}"));
    let listed = pair.vos("listaddrs -printuuid");
    assert!(listed.contains(uuid) && listed.contains(&gone) && listed.contains(&other), "{listed}");
    pair.vos(&format!("remaddrs -uuid {uuid}"));
    assert_eq!(pair.vos("listaddrs"), there);
}
