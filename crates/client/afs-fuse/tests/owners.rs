//! Tests of owners under a real kernel: how they are shown and changed, for programs that check them.
//!
//! They need root, to act as all users, and `/dev/fuse`; without these they say so and pass, but fail if `CI=true`.
#![allow(clippy::unwrap_used)] // A cell that cannot be made is a failed test.

#[allow(dead_code)] // Each test uses a part of it.
use crate::kit;

use afs_venus::TokenOwner;
use kit::{ALICE, BOB, MountedCell, NOBODY, SILENT, can_mount};

fn with_alice() -> MountedCell {
    let cell = MountedCell::new();
    cell.log_in(TokenOwner::Uid(ALICE), "alice");
    cell.log_in(TokenOwner::Uid(BOB), "bob");
    cell.sh(ALICE, "mkdir $M/home").unwrap();
    cell
}

#[test]
fn a_user_with_a_token_sees_his_files_as_his_own() {
    if !can_mount() {
        return;
    }
    let cell = with_alice();
    cell.sh(ALICE, "echo a > $M/home/f && ln -s f $M/home/l").unwrap();
    for name in ["home", "home/f", "home/l"] {
        // The same for every viewer.
        for viewer in [ALICE, BOB] {
            let shown = cell.sh(viewer, &format!("stat -c '%u %g' $M/{name}")).unwrap();
            assert_eq!(shown, format!("{ALICE} {ALICE}"), "{name} for {viewer}");
        }
    }
    let give = |user: u32, to: &str| cell.sh(user, &format!("chown {to} $M/home/f"));
    give(ALICE, &format!("{ALICE}:{ALICE}")).unwrap();
    give(ALICE, &format!(":{ALICE}")).unwrap();
    assert!(give(ALICE, &BOB.to_string()).unwrap_err().contains("not permitted"));
    assert_eq!(cell.sh(BOB, "stat -c %u $M/home/f").unwrap(), ALICE.to_string());
}

const PROGRAMS: &str = r#"
set -e
export HOME=$M/home LC_ALL=C
cd $M/home
L=$(mktemp -d)
mkdir $L/d
echo text > $L/d/f
chmod 640 $L/d/f
ln -s f $L/d/l
cp -a $L/d by-cp-a
cp -p $L/d/f by-cp-p
install -m 755 $L/d/f by-install
cp -a by-cp-a again
cp -r $L/d $L/e
mv $L/e by-mv
test $(stat -c %a by-cp-p) = 640
test $(stat -c %a by-install) = 755
test -L by-cp-a/l
if command -v rsync > /dev/null; then
    rsync -a $L/d/ by-rsync
    test $(stat -c %a by-rsync/f) = 640
fi
if command -v git > /dev/null; then
    git init -q p
    cd p
    git status > /dev/null
    echo a > a
    git add a
    git -c user.name=a -c user.email=a@b commit -qm a
    git status --short
fi
rm -rf $L
"#;

#[test]
fn programs_that_keep_owners_and_modes_work() {
    if !can_mount() {
        return;
    }
    let cell = with_alice();
    assert_eq!(cell.sh(ALICE, &format!("({PROGRAMS}) 2>&1")), Ok(String::new()));
}

#[test]
fn chown_does_what_it_says_or_says_that_it_does_not() {
    if !can_mount() {
        return;
    }
    let cell = with_alice();
    cell.sh(ALICE, "echo a > $M/home/f").unwrap();
    cell.sh(BOB, "echo b > $M/home/g").unwrap();
    let look = |file: &str| cell.sh(ALICE, &format!("stat -c %u:%g $M/home/{file}")).unwrap();
    // Each takes the other's file, which the server refuses.
    for (user, file) in [(ALICE, "g"), (BOB, "f")] {
        let before = look(file);
        for to in [format!("{user}"), format!("{user}:{user}")] {
            let said = cell.sh(user, &format!("chown {to} $M/home/{file}"));
            assert!(said.unwrap_err().contains("not permitted"), "{user} takes {file}");
        }
        assert_eq!(look(file), before);
    }
    // Users of the machine whom the cell does not know, and the group 0: Alice is no administrator and gets EPERM, as on a local disk.
    for wanted in [format!("chown {NOBODY}"), "chown 0".into(), "chgrp 0".into()] {
        let said = cell.sh(ALICE, &format!("{wanted} $M/home/f"));
        assert!(said.unwrap_err().contains("not permitted"), "{wanted}");
    }
    // A number that cannot be kept, and one of which nothing is known now.
    for (number, complaint) in [(2_130_706_432, "Invalid argument"), (SILENT, "timed out")] {
        let said = cell.sh(ALICE, &format!("chown {number} $M/home/f"));
        assert!(said.unwrap_err().contains(complaint), "{number}");
    }
}

/// Programs trust files by their owner, and any cell can say that a file is of its user 11.
#[test]
fn an_owner_in_another_cell_is_nobody_here() {
    if !can_mount() {
        return;
    }
    let cell = with_alice();
    cell.sh(ALICE, "echo a > $M/home/f && ln -s '#other.cell:root.cell.' $M/over").unwrap();
    assert_eq!(cell.sh(ALICE, "cat $M/over/home/f"), Ok("a".into()));
    let look = |file: &str| cell.sh(BOB, &format!("stat -c %u $M/{file}")).unwrap();
    assert_eq!(look("home/f"), ALICE.to_string());
    assert_eq!(look("over/home/f"), NOBODY.to_string());
    let said = cell.sh(ALICE, &format!("chown {ALICE} $M/over/home/f"));
    assert!(said.unwrap_err().contains("Invalid argument"));
}
