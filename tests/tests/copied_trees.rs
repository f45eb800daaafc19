//! Copies of trees by programs that keep what a file has: they take nothing along that is the place's, its access list and its quota. And
//! what tools ask of a mount in the place of attributes is shown only to users who can reach the object by a path.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Output;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::needs::{Need, all_there, is_installed};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run_any, seconds};
use andrew_tests::live::properties::property;
use andrew_tests::live::scratch::{Scratch, run_directory, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
const SERVER: &str = "127.0.0.1";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

/// Programs that copy the tree `$F` to `$T`, with all that they can keep of it.
fn programs() -> Vec<(&'static str, &'static str)> {
    let mut all = vec![
        ("copytree", "python3 -c 'import os, shutil; shutil.copytree(os.environ[\"F\"], os.environ[\"T\"])'"),
        (
            "copy2",
            "mkdir $T $T/sub && python3 -c 'import os, shutil\nfor name in [\"a\", \"sub/b\"]: shutil.copy2(os.environ[\"F\"] + \"/\" + name, os.environ[\"T\"] + \"/\" + name)'",
        ),
        ("cp", "cp -a $F $T"),
        (
            "tar",
            "mkdir $T && tar -C $F --xattrs --xattrs-include='*' -cf - . | tar -C $T --xattrs --xattrs-include='*' -xf -",
        ),
    ];
    if is_installed("rsync") {
        all.push(("rsync", "rsync -aX $F/ $T/"));
    }
    all
}

/// From a volume without a limit, whose tree everybody may change, to one with a limit, where only Alice may.
#[test]
fn a_copy_takes_neither_quota_nor_access_list_along() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Copiers]) {
        return;
    }
    let scratch = Scratch::new("copied-trees");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("copied-trees", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-copied");
    let for_all = CellOptions { more: vec!["--allow-other".into()], ..CellOptions::at(SERVER, "rl") };
    let cell = Cell::up(&netns, scratch.path(), &for_all);
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    alice.log_in(CELL, SERVER);
    let (state, top) = (cell.state().display().to_string(), cell.mount());
    for (volume, quota) in [("from", "0"), ("to", "20000")] {
        let at = top.join(volume).display().to_string();
        let _ = command(&netns, &["vos", "create", "--state", &state, volume]);
        let _ = command(&netns, &["fs", "mkmount", &at, volume]);
        let _ = command(&netns, &["fs", "setquota", &at, quota]);
        let _ = command(&netns, &["fs", "setacl", &at, "alice", "all", "system:anyuser", "none"]);
    }
    let (from, to) = (top.join("from"), top.join("to"));
    let list = property(&to, "afs.acl");
    for (who, user) in [("alice", Some(&alice)), ("root", None)] {
        let tree = from.join(who);
        let run_as = |line: &str, target: &Path| match user {
            Some(user) => user.sh(&tree, &format!("F=$A T={}; export F T; {line}", target.display())),
            None => {
                let mut shell = netns.command("bash");
                shell.args(["-o", "pipefail", "-c", line]).env("F", &tree).env("T", target);
                run_any(shell, seconds(60))
            }
        };
        let made = run_as("mkdir $F $F/sub && echo a > $F/a && echo b > $F/sub/b", &to);
        assert!(made.status.success(), "{}", said(&made));
        for folder in [tree.clone(), tree.join("sub")] {
            let words = ["fs", "setacl", folder.to_str().unwrap(), "system:anyuser", "all", "alice", "read"];
            let _ = command(&netns, &words);
        }
        for (program, line) in programs() {
            let target = to.join(format!("{who}-{program}"));
            let copied = run_as(line, &target);
            assert!(copied.status.success(), "{who}, {program}: {}", said(&copied));
            // tar warns of each file that its file system has no attributes.
            let complaints = said(&copied).lines().filter(|line| !line.contains("Cannot flistxattr")).count();
            assert_eq!(complaints, 0, "{who}, {program}: {}", said(&copied));
            assert_eq!(fs::read_to_string(target.join("sub/b")).unwrap(), "b\n", "{who}, {program}");
            for folder in [to.clone(), target.clone(), target.join("sub")] {
                assert_eq!(property(&folder, "afs.acl"), list, "{who}, {program}: {}", folder.display());
            }
            assert_eq!(property(&to, "afs.quota"), "20000", "{who}, {program}");
        }
    }
    cell.stop();
}

/// Asks each mount for a property of an inode number, as no program of Andrew's does: `$INO`, `$NAME`, and `$VALUE` to set it.
const RAW: &str = r#"
import glob, os, socket, struct
name, value = os.environ["NAME"].encode(), os.environ.get("VALUE")
body = b"\x0f\0" + struct.pack(">QH", int(os.environ["INO"]), len(name)) + name
body += b"\0" if value is None else b"\1" + value.encode()
for path in glob.glob(os.environ["RUN"] + "/mounts/*.sock"):
    mount = socket.socket(socket.AF_UNIX)
    mount.connect(path)
    mount.sendall(struct.pack(">I", len(body)) + body)
    length, kind = struct.unpack(">IB", mount.recv(5, socket.MSG_WAITALL))
    reply = mount.recv(length - 1, socket.MSG_WAITALL) if length > 1 else b""
    print({0: "done", 10: "value", 11: "error"}[kind], struct.unpack(">i", reply)[0] if kind == 11 else reply.decode())
"#;

#[test]
fn a_guessed_number_tells_no_more_than_a_path() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Copiers]) {
        return;
    }
    let scratch = Scratch::new("guessed-numbers");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    let _watchdog = Watchdog::new("guessed-numbers", seconds(300), move || unmount_below(&below));
    let netns = Netns::fresh("andrew-guessed");
    let for_all = CellOptions { more: vec!["--allow-other".into()], ..CellOptions::at(SERVER, "rl") };
    let cell = Cell::up(&netns, scratch.path(), &for_all);
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let bob = User::new(&netns, cell.state(), scratch.path(), "bob", BOB);
    let hers = cell.mount().join("alice");
    fs::create_dir(&hers).unwrap();
    let _ =
        command(&netns, &["fs", "setacl", hers.to_str().unwrap(), "alice", "all", "system:anyuser", "none"]);
    alice.log_in(CELL, SERVER);
    let made = alice.sh(&hers, "mkdir $A/sub && echo secret > $A/secret");
    assert!(made.status.success(), "{}", said(&made));
    let number = |path: &Path| fs::symlink_metadata(path).unwrap().ino();
    let asked = |user: &User<'_>, inode: u64, name: &str, value: Option<&str>| {
        let mut python = user.command("python3", &["-c", RAW]);
        python.env("INO", inode.to_string()).env("NAME", name).env("RUN", run_directory().unwrap());
        python.envs(value.map(|value| ("VALUE", value)));
        said(&run_any(python, seconds(60)))
    };
    for round in 0..2 {
        // First without a token, then with a token of his own.
        if round == 1 {
            bob.log_in(CELL, SERVER);
        }
        for path in [hers.join("secret"), hers.join("sub")] {
            for name in
                ["afs.fid", "afs.volume", "afs.cell", "afs.status", "afs.acl", "afs.whereis", "afs.bypass"]
            {
                assert_eq!(
                    asked(&bob, number(&path), name, None),
                    "error 13",
                    "{name} of {}",
                    path.display()
                );
            }
            for (name, value) in
                [("afs.flush", "file"), ("afs.quota", "1"), ("afs.acl", "0\n0\n"), ("afs.bypass", "on")]
            {
                let set = asked(&bob, number(&path), name, Some(value));
                assert_eq!(set, "error 13", "{name} of {}", path.display());
            }
            let fid = asked(&alice, number(&path), "afs.fid", None);
            assert_eq!(fid, format!("value {}", property(&path, "afs.fid")));
            let by_path =
                bob.sh(&path, &format!("{} fs getfid $A", andrew_tests::live::cell::andrew().display()));
            assert!(said(&by_path).contains("required access rights"), "{}", said(&by_path));
        }
        // What bob can reach by a path, bob can ask for by its number.
        assert!(asked(&bob, number(&hers), "afs.fid", None).starts_with("value "));
        assert_eq!(asked(&bob, number(&hers), "afs.acl", None), "error 13");
        assert_eq!(asked(&bob, 1 << 40, "afs.fid", None), "error 116");
        assert_eq!(asked(&bob, u64::MAX, "afs.fid", None), "error 116");
    }
    cell.stop();
}
