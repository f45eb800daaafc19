//! backup, backupsys, clone, addsite, remsite, release, convertROtoRW.

use std::path::PathBuf;
use std::time::Instant;

use andrew_tests::live::dumps::{assert_alike, vnodes};
use andrew_tests::live::manifest::{Manifest, assert_same, manifest};
use andrew_tests::live::pair::Pair;
use andrew_tests::live::process::seconds;
use andrew_tests::live::tree::change;
use andrew_tests::live::wait::until;

use super::pair;

#[test]
fn clones_keep_the_state_they_were_made_of() {
    let Some(pair) = pair("openafs-vos-clones") else { return };
    let (point, first) = pair.volume_with_tree("v", "ONE a");
    pair.vos("backup v");
    let backup = pair.mounted("v.backup");
    assert_same("the backup volume", &first, &manifest(&backup));
    change(&point, 0);
    let second = manifest(&point);
    assert_same("the backup volume stays", &first, &manifest(&backup));

    pair.vos("create TWO a other");
    let said = pair.vos("backupsys -prefix v -exclude");
    assert!(said.contains("done") || said.contains("Total volumes backed up"), "{said}");
    assert_same("backupsys left it out", &first, &manifest(&backup));
    let said = pair.vos("backupsys -prefix v");
    assert!(said.contains("Total volumes backed up: 1; failed to backup: 0"), "{said}");
    assert_same("the backup volume is made anew", &second, &manifest(&backup));

    for (number, kind) in ["", " -readonly", " -readwrite"].into_iter().enumerate() {
        let (name, id) = (format!("c{number}"), 610_000_000 + number);
        pair.vos(&format!("clone v -toname {name} -toid {id}{kind}"));
        let listed = pair.vos("listvol ONE a");
        assert!(listed.contains(&name) && listed.contains(&id.to_string()), "{listed}");
    }
    change(&point, 1);
    pair.vos("zap ONE a 610000000");
    pair.vos("zap ONE a 610000001");
    // The remaining one has no entry, and gets one from the volume on the server.
    pair.vos("syncvldb ONE a");
    let clone = pair.mounted("c2");
    assert_same("a clone to write to", &second, &manifest(&clone));
    change(&clone, 1);
    assert_ne!(second, manifest(&clone));
    assert_same("its source's backup", &second, &manifest(&backup));
    pair.vos("remove ONE a v.backup");
    assert!(!pair.vos("listvol ONE a").contains("v.backup"));
}

#[test]
fn replicas_get_what_is_released_and_nothing_else() {
    let Some(pair) = pair("openafs-vos-release") else { return };
    let (point, first) = pair.volume_with_tree("v", "ONE a");
    for site in ["ONE a", "TWO a"] {
        pair.vos(&format!("addsite {site} v"));
    }
    assert_eq!(pair.vos("listvldb v").matches("Not released").count(), 2);
    // A volume less than two seconds older than its copies counts as a different one, and is sent in full.
    let planted = Instant::now();
    until("an older volume", seconds(30), || (planted.elapsed() > seconds(3)).then_some(()));
    pair.vos("release v");
    let replica = Replica { pair: &pair, point: pair.mounted("v.readonly") };
    replica.is_at_both_sites("released in full", &first);

    change(&point, 0);
    let second = manifest(&point);
    replica.is_at_both_sites("not released yet", &first);
    let said = pair.vos("release v -verbose");
    assert!(said.contains("(as of ") && !said.contains("(full release)"), "{said}");
    replica.is_at_both_sites("released what changed", &second);
    pair.vos("release v");
    replica.is_at_both_sites("released when nothing had changed", &second);
    change(&point, 1);
    pair.vos("release v -f");
    let third = manifest(&point);
    replica.is_at_both_sites("released by force", &third);

    // A site is removed, and one is added: only changes are sent.
    pair.vos("remove TWO a v.readonly");
    assert!(!pair.vos("listvldb v").contains("/vicepa RO Site \n       server"));
    pair.vos("addsite TWO b v");
    let said = pair.vos("release v -verbose");
    assert!(said.contains("v.readonly") || said.contains("TWO") || said.contains(&pair.two()), "{said}");
    replica.is_at_both_sites("released to a new site", &third);

    pair.vos("remsite ONE a v");
    // The server of the read-write volume runs, and takes it off line by itself.
    pair.vos(&format!("convertROtoRW {} b v -force", pair.two()));
    until("one writer", seconds(30), || {
        let volumes = pair.vos("listvol ONE a");
        volumes.lines().any(|line| line.starts_with("v ") && line.contains("Off-line")).then_some(())
    });
    let listed = pair.vos("listvldb v");
    assert!(listed.contains(&format!("server {} partition /vicepb RW Site", pair.two())), "{listed}");
    assert_same("the replica is the volume now", &third, &manifest(&point));
    change(&point, 2);
    assert_ne!(third, manifest(&point));
}

struct Replica<'a> {
    pair: &'a Pair,
    point: PathBuf,
}

impl Replica<'_> {
    /// Read through the mount, and from each of the hosts separately: the other is compared by a dump.
    fn is_at_both_sites(&self, what: &str, wanted: &Manifest) {
        assert_same(what, wanted, &manifest(&self.point));
        self.sites_are_alike(what);
    }

    /// The dumps of both sites are equal.
    fn sites_are_alike(&self, what: &str) {
        let sites = self.sites().into_iter().map(|(server, partition)| {
            let file = self.pair.folder().join("replica.dump");
            let path = file.display();
            self.pair.vos(&format!("dump v.readonly -file {path} -server {server} -partition {partition}"));
            vnodes(&file)
        });
        let sites: Vec<_> = sites.collect();
        assert_eq!(sites.len(), 2, "{what}");
        assert_alike(what, &sites[0], &sites[1]);
    }

    fn sites(&self) -> Vec<(String, String)> {
        let listed = self.pair.vos("listvldb v");
        let sites = listed.lines().filter(|line| line.contains("RO Site"));
        sites
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .map(|words| (words[1].to_owned(), words[3].to_owned()))
            .collect()
    }
}
