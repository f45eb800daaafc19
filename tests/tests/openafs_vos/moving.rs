//! move, copy, shadow, changeloc.

use std::fs;
use std::path::Path;

use andrew_tests::live::manifest::{assert_same, manifest, quota};
use andrew_tests::live::pair::Pair;
use andrew_tests::live::tree::change;

use super::pair;

#[test]
fn volumes_are_moved_and_copied_with_all_they_hold() {
    let Some(pair) = pair("openafs-vos-moving") else { return };
    let (point, mut wanted) = pair.volume_with_tree("v", "ONE a");
    let room = quota(&point);
    assert_eq!(room.0, 100_000);

    // From host to host, between the partitions of one, and back.
    for (from, to, round) in [("ONE a", "TWO a", 0), ("TWO a", "TWO b", 1), ("TWO b", "ONE b", 2)] {
        let open = fs::File::open(point.join("medium")).unwrap();
        let said = pair.vos(&format!("move v {from} {to}"));
        assert!(said.contains("moved from"), "{said}");
        assert_same(&format!("moved to {to}"), &wanted, &manifest(&point));
        assert_eq!(quota(&point).0, room.0);
        assert_eq!(open.metadata().unwrap().len(), 9 << 16);
        let place = to.replace("ONE ", &pair.one()).replace("TWO ", &pair.two());
        let (host, partition) = place.split_at(place.len() - 1);
        let examined = pair.vos("examine v");
        assert!(
            examined.contains(&format!("server {host} partition /vicep{partition} RW Site")),
            "{examined}"
        );
        change(&point, round);
        wanted = manifest(&point);
    }
    pair.vos("move v ONE b TWO a -live");
    assert_same("moved alive", &wanted, &manifest(&point));
    assert_eq!(pair.vos("listvol ONE").matches(" RW ").count(), 2, "only the cell's own are left");

    pair.vos("copy v TWO a w ONE a");
    let copy = pair.mounted("w");
    assert_same("the copy", &wanted, &manifest(&copy));
    pair.vos("copy v TWO a u ONE b -readonly");
    change(&point, 3);
    assert_same("the copy goes its own way", &wanted, &manifest(&copy));
    assert_ne!(wanted, manifest(&point));

    shadows(&pair, &point);
    pair.vos("changeloc TWO b w");
    assert!(pair.vos("listvldb w").contains(&format!("server {} partition /vicepb RW Site", pair.two())));
    pair.vos("changeloc ONE a w");
    assert_same("the copy is found again", &wanted, &manifest(&copy));
    assert!(pair.vos("listvldb -locked").contains("Total entries: 0"));
}

/// A shadow has no entry: it is found by its number only.
fn shadows(pair: &Pair, point: &Path) {
    pair.vos("shadow v TWO a ONE b -toname shadow.v -toid 600000000");
    assert!(pair.vos("listvol ONE b").contains("shadow.v"));
    assert!(pair.vos_refused("examine shadow.v").contains("no such entry"));
    change(point, 4);
    pair.vos("shadow v TWO a ONE b -toname shadow.v -toid 600000000 -incremental");
    pair.vos("syncvldb ONE b");
    let shadow = pair.mounted("shadow.v");
    assert_same("the shadow", &manifest(point), &manifest(&shadow));
}
