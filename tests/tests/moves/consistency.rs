//! Consistency of location database and servers, without leftovers.

use std::collections::BTreeSet;

use andrew_tests::live::fleet::Fleet;
use serde_json::Value;

/// Every volume of the location database is unlocked, and complete at its sites; the servers have no others.
pub fn check(fleet: &Fleet) {
    let entries = fleet.vos(&["listvldb"]);
    let mut named = BTreeSet::new();
    for entry in entries.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        assert_eq!(entry["locked"], false, "{entry}");
        for site in entry["sites"].as_array().unwrap() {
            let role = site["role"].as_str().unwrap();
            let id = &entry[if role == "read-write" { "read_write_id" } else { "read_only_id" }];
            if site["state"] != "Not released" {
                named.insert((
                    site["server"].as_str().unwrap().to_owned(),
                    id.as_u64().unwrap(),
                    name.to_owned(),
                ));
            }
        }
    }
    let mut held = BTreeSet::new();
    for number in 0..3 {
        for volume in volumes(fleet, number) {
            assert_eq!((&volume["status"], &volume["online"]), (&"OK".into(), &true.into()), "{volume}");
            let name = volume["name"].as_str().unwrap().trim_end_matches(".readonly").to_owned();
            held.insert((fleet.address(number).to_owned(), volume["id"].as_u64().unwrap(), name));
        }
    }
    assert_eq!(named, held, "left: the location database, right: the servers");
}

/// The volumes on a server.
fn volumes(fleet: &Fleet, number: usize) -> Vec<Value> {
    let listed = fleet.vos(&["listvol", fleet.address(number)]);
    let partitions = listed.as_array().unwrap().iter();
    partitions.flat_map(|partition| partition["volumes"].as_array().unwrap().clone()).collect()
}
