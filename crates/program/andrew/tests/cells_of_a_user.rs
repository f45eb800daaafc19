//! Tests of the choice of a running cell by commands, and of restarts with kept options.
#![allow(clippy::unwrap_used)]

use crate::home;

use home::{Home, free_ports};

#[test]
fn the_only_cell_that_runs_needs_no_state_option() {
    let home = Home::new();
    home.done(&format!("serve --state elsewhere --base-port {} --detach", free_ports()));
    home.done("pts createuser alice");
    assert!(home.done("vos listvol").contains("root.cell"));
    assert!(home.done("status").contains("cell andrew.local runs as process"));
    assert_eq!(home.done("down"), "cell andrew.local is down\n");
    assert!(home.refused(2, "vos listvol").contains("no cell is running on"));
}

#[test]
fn of_several_cells_a_command_asks_which_and_says_how() {
    let home = Home::new();
    let (one, other) = (free_ports(), free_ports());
    home.done(&format!("serve --state one --cell one.test --base-port {one} --detach"));
    home.done(&format!("serve --state two --cell two.test --base-port {other} --detach"));
    for line in ["vos listvol", "pts listentries", "down", "passwd --remove bob"] {
        let said = home.refused(2, line);
        let wanted = format!(
            "one.test (--state {}), two.test (--state {})",
            home.file("one").display(),
            home.file("two").display()
        );
        assert!(said.contains(&wanted), "{line}: {said}");
    }
    let status = home.done("status");
    assert!(status.contains("one.test") && status.contains("two.test"), "{status}");
    home.done("vos create --cell two.test projects");
    assert!(home.done("vos listvol --state two").contains("projects"));
    let chosen = home.command(&["vos", "listvol"]).env("ANDREW_STATE", home.file("one")).output().unwrap();
    assert!(!String::from_utf8(chosen.stdout).unwrap().contains("projects"));
    home.done("down --state two");
    assert!(!home.done("vos listvol").contains("projects"));
}

#[test]
fn a_cell_comes_up_again_with_the_ports_it_was_given() {
    let home = Home::new();
    let base = free_ports();
    home.done(&format!("serve --base-port {base} --detach"));
    home.done("down");
    assert!(home.done("serve --detach").contains(&format!("ports from {base}")));
    home.done("down");
    let other = free_ports();
    assert!(home.done(&format!("serve --base-port {other} --detach")).contains(&format!("{other}")));
    home.done("down");
    assert!(home.done("up --no-mount --detach").contains(&format!("ports from {other}")));
    home.done("down");
    assert!(home.done("up --detach").contains("is served at"), "without a mount, as before");
}

#[test]
fn a_volume_made_without_a_quota_has_none() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    home.done("vos create projects");
    let seen: serde_json::Value = serde_json::from_str(&home.done("vos --json examine projects")).unwrap();
    assert!(seen["volumes"][0]["quota_bytes"].is_null());
}

#[test]
fn a_new_volume_goes_where_the_cell_has_its_only_partition() {
    let home = Home::new();
    let base = free_ports();
    home.done(&format!("serve --base-port {base} --detach"));
    let key = home.file(".local/state/andrew/keys/KeyFileExt");
    let from_afar =
        format!("--servers 127.0.0.1 --base-port {base} --localauth --key-file {}", key.display());
    home.done(&format!("vos {from_afar} create projects"));
    assert!(home.done("vos listvol").contains("projects"));
}

#[test]
fn a_passphrase_is_asked_for_only_for_a_user_that_exists() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    // The file does not exist: that would be the error if it were read first.
    assert_eq!(
        home.refused(2, "passwd nobodyknown --passphrase-file nothing"),
        "andrew: there is no user 'nobodyknown' in andrew.local; `andrew pts createuser` makes one\n"
    );
}

#[test]
fn refusals_have_no_codes_in_them() {
    let home = Home::new();
    let base = free_ports();
    home.done(&format!("serve --base-port {base} --detach"));
    let said = home.refused(1, &format!("vos --servers 127.0.0.1 --base-port {base} create 127.0.0.1 a x"));
    assert!(said.contains("only administrators may do this") && !said.contains('('), "{said}");
    let said = home.refused(1, &format!("pts --servers 127.0.0.1 --base-port {base} createuser x"));
    assert!(said.contains("pts: Permission denied; unable to create user x"), "{said}");
}

#[test]
fn the_schedule_of_snapshots_is_shown_set_and_switched_off_and_kept_by_the_cell() {
    let home = Home::new();
    home.done(&format!("serve --base-port {} --detach", free_ports()));
    let shown = |home: &Home| -> serde_json::Value {
        serde_json::from_str(&home.done("vos snapshot schedule --json")).unwrap()
    };
    assert_eq!((shown(&home)["daily"].as_u64(), shown(&home)["weekly"].as_u64()), (Some(7), Some(4)));
    home.done("vos snapshot schedule set --daily 14");
    home.done("down");
    home.done("serve --detach");
    assert_eq!((shown(&home)["daily"].as_u64(), shown(&home)["weekly"].as_u64()), (Some(14), Some(4)));
    assert!(home.done("vos snapshot schedule off").contains("by hand only"));
    assert_eq!(shown(&home)["on"], false);
}
