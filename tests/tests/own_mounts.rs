//! Two mounts of an Andrew cell: each sees the other's changes at once.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::os::unix::fs::{FileExt, PermissionsExt, chown};
use std::process::Output;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command, try_command};
use andrew_tests::live::dns::DnsServer;
use andrew_tests::live::exercise::{Views, everything};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

#[test]
fn mounts_see_at_once_what_others_have_done() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("own-mounts");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("own_mounts", seconds(400), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-own");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    let (owner, guest) = (cell.mount().to_owned(), other.path().to_owned());
    for (name, here, there) in
        [("owner", &owner, &owner), ("to-guest", &owner, &guest), ("to-owner", &guest, &owner)]
    {
        // Anonymous users have the rights that a folder's access list grants, and a new folder inherits the list of its
        // parent.
        fs::create_dir(guest.join(name)).unwrap();
        everything(&Views::of_ours(&here.join(name), &there.join(name)));
        fs::remove_dir(here.join(name)).unwrap();
        assert!(!there.join(name).exists());
    }
    symlink("somewhere/else", guest.join("link")).unwrap();
    assert_eq!(fs::read_link(owner.join("link")).unwrap().to_str(), Some("somewhere/else"));
    // Back and forth: neither ever sees the earlier contents.
    for round in 0..200 {
        let (here, there) = if round % 2 == 0 { (&owner, &guest) } else { (&guest, &owner) };
        fs::write(here.join("ball"), format!("round {round}")).unwrap();
        assert_eq!(fs::read_to_string(there.join("ball")).unwrap(), format!("round {round}"));
        fs::rename(here.join("ball"), here.join(format!("ball{round}"))).unwrap();
        assert!(!there.join("ball").exists());
        fs::rename(there.join(format!("ball{round}")), there.join("ball")).unwrap();
    }
    drop(other);
    cell.stop();
}

/// `/afs` of two cells: one is configured, the other one in DNS.
#[test]
fn cells_stand_side_by_side_in_one_mount() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    const OTHER: &str = "other.test";
    let scratch = Scratch::new("two-cells");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("two_cells", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-cells");
    for address in ["192.0.2.1/32", "192.0.2.2/32", "192.0.2.3/32"] {
        let mut add = netns.command("ip");
        add.args(["addr", "add", address, "dev", "lo"]);
        run(add, seconds(20));
    }
    let folder_of = |name: &str| {
        let folder = scratch.path().join(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    let home = Cell::serve(&netns, &folder_of("home"), &CellOptions::at("192.0.2.1", "rlidwka"));
    let options = CellOptions { cell: OTHER.into(), ..CellOptions::at("192.0.2.2", "rlidwka") };
    let other = Cell::serve(&netns, &folder_of("other"), &options);
    let dns = DnsServer::start(&netns, ([192, 0, 2, 3], 53).into(), &[(OTHER, [192, 0, 2, 2].into())]);
    let options = ["--dynroot", "--dns", "192.0.2.3", "--cellservdb", "off"];
    let mount = Mount::new(&netns, CELL, "192.0.2.1", scratch.path(), "afs", &options);
    let at = |path: &str| mount.path().join(path);
    let text = |path: &str| at(path).display().to_string();
    let listed = || {
        let names = fs::read_dir(mount.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(listed(), [".live.test", "live.test"]);
    fs::write(at("live.test/file"), "at home").unwrap();
    fs::write(at("other.test/file"), "elsewhere").unwrap();
    assert_eq!(fs::read_to_string(at(".other.test/file")).unwrap(), "elsewhere");
    assert_eq!(listed(), [".live.test", ".other.test", "live.test", "other.test"]);
    for absent in ["absent.test", "absent", ".hidden"] {
        assert_eq!(fs::metadata(at(absent)).unwrap_err().kind(), ErrorKind::NotFound, "{absent}");
    }
    assert!(fs::create_dir(at("new")).is_err());
    let _ = command(&netns, &["fs", "mkmount", &text("live.test/over"), "root.cell", "--cell", OTHER]);
    assert_eq!(fs::read_to_string(at("live.test/over/file")).unwrap(), "elsewhere");
    let cell = command(&netns, &["fs", "whichcell", &text("live.test/over")]);
    assert!(cell.contains("'other.test'"), "{cell}");
    // A third name for the second cell, by hand.
    let _ = command(&netns, &["fs", "newcell", "third.test", "192.0.2.2"]);
    assert_eq!(fs::read_to_string(at("third.test/file")).unwrap(), "elsewhere");
    let cells = command(&netns, &["fs", "listcells"]);
    for cell in ["live.test on hosts 192.0.2.1.", "other.test on hosts 192.0.2.2.", "third.test on hosts"] {
        assert!(cells.contains(cell), "{cells}");
    }
    let _ = command(&netns, &["fs", "setserverprefs", "192.0.2.2", "5000"]);
    let ranks = command(&netns, &["fs", "getserverprefs"]);
    let words: Vec<&str> = ranks.split_whitespace().collect();
    assert!(words.windows(2).any(|pair| pair == ["192.0.2.2", "5000"]), "{ranks}");
    assert!(words.windows(2).any(|pair| pair == ["192.0.2.1", "20000"]), "{ranks}");
    drop(mount);
    drop(dns);
    other.stop();
    home.stop();
}

#[test]
fn a_descriptor_that_outlives_an_orderly_stop_changes_nothing_that_is_read_later() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("outlived-mounts");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("outlived_mounts", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-late");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mounted = || Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &[]);
    // Written to after the stop, and after the next start; in one of two cases also before the stop.
    for (round, (dirty, late)) in
        [(false, false), (false, true), (true, false), (true, true)].into_iter().enumerate()
    {
        let other = mounted();
        let (name, path) = (format!("file{round}"), other.path().join(format!("file{round}")));
        fs::write(&path, "OLDOLDOLD").unwrap();
        let open = fs::File::options().read(true).write(true).open(&path).unwrap();
        if dirty {
            open.write_all_at(b"HALF", 0).unwrap();
        }
        drop(other);
        let left = fs::read_to_string(scratch.path().join("other.cache/left-open.json")).unwrap();
        assert!(left.contains(&*path.to_string_lossy()), "{left}");
        let write = || drop(open.write_all_at(b"NEW, LONGER", 0));
        let stored = if dirty { "HALFLDOLD" } else { "OLDOLDOLD" };
        if !late {
            write();
        }
        let again = mounted();
        if late {
            assert_eq!(fs::read_to_string(&path).unwrap(), stored);
            write();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), stored);
        assert_eq!(fs::read_to_string(cell.mount().join(&name)).unwrap(), stored);
        assert_eq!(fs::metadata(&path).unwrap().len(), 9);
        drop(again);
    }
    cell.stop();
}

/// A user number without an account on any machine.
const ALICE: u32 = 61_001;

#[test]
fn a_user_of_the_cell_sees_her_files_as_her_own_after_the_login() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("owners");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("owners", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-owners");
    let options = CellOptions { more: vec!["--allow-other".into()], ..CellOptions::at("127.0.0.1", "rl") };
    let cell = Cell::up(&netns, scratch.path(), &options);
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    // The first user of a cell has the number of a system account of every machine.
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let hers = cell.mount().join("alice");
    fs::create_dir(&hers).unwrap();
    let _ = command(&netns, &["fs", "setacl", hers.to_str().unwrap(), "alice", "all"]);
    let sh = |script: &str| -> Output { alice.sh(&hers, script) };
    let said = |output: Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
    alice.log_in(CELL, "127.0.0.1");
    assert!(sh("echo text > $A/f").status.success());
    assert_eq!(said(sh("stat -c '%u %g' $A/f")), format!("{ALICE} {ALICE}"));
    // Files of the administrator belong to the creator of the cell, on every mount.
    assert_eq!(said(sh("stat -c '%u %g' $A")), "0 0");
    for script in [
        "chown $(id -u):$(id -g) $A/f",
        "cp -a $A/f $A/by-cp",
        "install -m 755 $A/f $A/by-install",
        "cp $A/f ~/local && chmod 640 ~/local && mv ~/local $A/by-mv && test $(stat -c %a $A/by-mv) = 640",
        "cd $A && git init -q p && cd p && git status",
    ] {
        let output = sh(script);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && complaint.is_empty(), "{script}: {complaint}");
    }
    assert!(!sh("chown 0 $A/f").status.success());
    // The administrator changes the owner of a file and changes it back.
    let file = hers.join("f");
    let owner = |file: &std::path::Path| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(file).map(|status| (status.uid(), status.gid())).unwrap()
    };
    chown(&file, Some(0), Some(0)).unwrap();
    assert_eq!(owner(&file), (0, 0));
    chown(&file, Some(ALICE), Some(ALICE)).unwrap();
    assert_eq!(owner(&file), (ALICE, ALICE));
    // Users of the machine whom the cell does not know are kept as numbers, with and without accounts here; and the groups of root.
    for (uid, gid) in [(60_123, 456), (1, 1), (65_534, 0), (2_000_200_000, 100), (60_123, 0)] {
        chown(&file, Some(uid), Some(gid)).unwrap();
        assert_eq!(owner(&file), (uid, gid));
    }
    chown(&file, Some(0), Some(0)).unwrap();
    assert_eq!(owner(&file), (0, 0));
    cell.stop();
}

/// Trees with owners of many kinds, by the programs that keep owners: `$1` is the mount, `$2` a directory of the machine, in which `list` is
/// what the copies must show. The second run of a program changes nothing.
const MOVING_IN: &str = r#"
set -e
mkdir -p "$2/home/a" "$2/home/b"
cd "$2/home"
for owner in 0:0 1:1 1000:1000 4000:4000 65534:0 60123:456; do
    echo "$owner" > "a/$owner"
    ln -s "$owner" "b/$owner"
    chown -h "$owner" "a/$owner" "b/$owner"
done
chown 4000:4000 a
chown 1000:1000 b
list() { (cd "$1" && find . -printf '%p %U %G\n' | sort); }
list . > "$2/list"
tar cf "$2/home.tar" .
cp -a "$2/home" "$1/by-cp"
mkdir "$1/by-tar"
tar xpf "$2/home.tar" -C "$1/by-tar"
copies="by-cp by-tar"
if command -v rsync > /dev/null; then
    rsync -a "$2/home/" "$1/by-rsync"
    # A symbolic link has its own mode here.
    test -z "$(rsync -ai --no-perms "$2/home/" "$1/by-rsync")"
    copies="$copies by-rsync"
fi
for copy in $copies; do
    list "$1/$copy" | diff - "$2/list" || { echo "$copy differs"; exit 1; }
done
"#;

/// What `$2/list` has, on the mount `$1` of another machine. There root is not the administrator of the cell, and the accounts of the
/// system own nothing that the cell says is theirs.
const SEEN_ELSEWHERE: &str = r#"
cd "$1/by-cp"
find . -printf '%p %U %G\n' | sort > "$2/elsewhere"
sed 's/ 0 0$/ 2147483649 65534/; s/ 1 1$/ 65534 1/' "$2/list" | diff - "$2/elsewhere"
"#;

#[test]
fn root_moves_homes_in_and_keeps_owners_that_the_cell_does_not_know() {
    if !all_there(&[Need::Root, Need::Fuse, Need::Copiers]) {
        return;
    }
    let scratch = Scratch::new("moving-in");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("moving_in", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-moving-in");
    let more = vec!["--allow-other".into(), "--lease".into()];
    let cell = Cell::up(&netns, scratch.path(), &CellOptions { more, ..CellOptions::at("127.0.0.1", "rl") });
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let as_root = |script: &str, mount: &std::path::Path| {
        let mut command = netns.command("sh");
        command.args(["-c", script, "sh"]).arg(mount).arg(scratch.path());
        run(command, seconds(100))
    };
    // A user of the cell has the number of a user of the machine, whose files are hers by no means.
    let state = cell.state().display().to_string();
    let _ = command(&netns, &["pts", "setmax", "-user", "3999", "--state", &state]);
    let mallory = User::new(&netns, cell.state(), scratch.path(), "mallory", 61_002);
    mallory.log_in(CELL, "127.0.0.1");
    let _ = as_root(MOVING_IN, cell.mount());
    let drop_box = cell.mount().join("by-cp/a");
    let _ = command(
        &netns,
        &["fs", "setacl", drop_box.to_str().unwrap(), "system:anyuser", "none", "mallory", "li"],
    );
    assert!(mallory.sh(&drop_box, "echo hers > $A/hers && cat $A/hers").status.success());
    assert!(!mallory.sh(&drop_box, "cat $A/4000:4000").status.success());
    assert!(!mallory.sh(&drop_box, "echo more >> $A/4000:4000").status.success());
    fs::remove_file(drop_box.join("hers")).unwrap();
    let _ = command(
        &netns,
        &["fs", "setacl", drop_box.to_str().unwrap(), "system:anyuser", "rl", "mallory", "none"],
    );
    let other = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "other", &["--allow-other"]);
    let _ = as_root(SEEN_ELSEWHERE, other.path());
    // Of a machine whose root is a user of the cell all numbers are seen.
    chown(mallory.home().join("passphrase"), Some(0), Some(0)).unwrap();
    User::known(&netns, scratch.path(), "mallory", 0).log_in(CELL, "127.0.0.1");
    let _ = as_root(&SEEN_ELSEWHERE.replace("; s/ 1 1$/ 65534 1/", ""), other.path());
    drop(other);
    cell.stop();
}

#[test]
fn the_order_to_stop_names_the_data_that_no_server_took() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("lost-data");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("lost_data", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-lost");
    let mut cell = Cell::up(&netns, scratch.path(), &CellOptions::on_loopback());
    let file = cell.mount().join("too-large");
    let _ = command(&netns, &["fs", "setquota", cell.mount().to_str().unwrap(), "100"]);
    fs::write(&file, vec![b'x'; 2 << 20]).unwrap();
    assert!(fs::File::open(&file).unwrap().sync_all().is_err(), "the quota refuses it");
    let stopped = try_command(&netns, &["--json", "down", "--state", cell.state().to_str().unwrap()]);
    assert!(!stopped.status.success(), "data that is not stored is an error");
    let told: serde_json::Value = serde_json::from_slice(&stopped.stdout).unwrap();
    let [lost] = &told["not_stored"].as_array().unwrap()[..] else { panic!("{told}") };
    assert_eq!((lost["file"].as_str(), lost["bytes"].as_u64()), (file.to_str(), Some(2 << 20)));
    assert!(lost["why"].as_str().unwrap().contains("quota"), "{lost}");
    assert_eq!(lost["is_kept"].as_bool(), Some(true));
    cell.kill();
}

#[test]
fn data_that_no_server_took_survives_a_kill_of_the_mount() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("kept-data");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("kept_data", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-kept");
    let up = || Cell::up(&netns, scratch.path(), &CellOptions::on_loopback());
    let mut cell = up();
    let file = cell.mount().join("too-large");
    let data = vec![b'x'; 2 << 20];
    let quota = |kib| command(&netns, &["fs", "setquota", scratch.path().join("afs").to_str().unwrap(), kib]);
    let _ = quota("100");
    fs::write(&file, &data).unwrap();
    assert!(fs::File::open(&file).unwrap().sync_all().is_err(), "the quota refuses it");
    cell.kill();
    let cell = up();
    let told = until("the data of the killed mount", seconds(60), || {
        let told = command(&netns, &["--json", "fs", "recover", "list"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told.as_array().unwrap().first().cloned()
    });
    assert_eq!((told["unsaved_bytes"].as_u64(), told["is_kept"].as_bool()), (Some(2 << 20), Some(true)));
    assert!(told["error"].as_str().unwrap().contains("quota"), "{told}");
    let mount = cell.mount().to_str().unwrap();
    let _ = command(&netns, &["fs", "setvol", mount, "--max", "10M", "--offlinemsg", "moves on Sunday"]);
    let examined = command(&netns, &["fs", "examine", mount]);
    assert!(examined.contains("message is moves on Sunday\nCurrent disk quota is 10240\n"), "{examined}");
    assert!(fs::read(&file).unwrap() == data, "it is read here before it is stored");
    let _ = command(&netns, &["fs", "recover", "retry", file.to_str().unwrap()]);
    cell.stop();
    let cell = up();
    assert!(fs::read(&file).unwrap() == data);
    cell.stop();
}

/// One that is given and does not hold would break NFS servers and others in ways that they do not expect.
#[test]
fn no_file_handles_are_given() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("no-handles");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("no_handles", seconds(100), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-handles");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::on_loopback());
    fs::write(cell.mount().join("file"), "data").unwrap();
    for name in ["file", ""] {
        let mut ask = netns.command("python3");
        ask.args(["-c", HANDLE_OF]).arg(cell.mount().join(name));
        assert_eq!(run(ask, seconds(60)).trim(), "EOPNOTSUPP", "{name}");
    }
    cell.stop();
}

/// Asks name_to_handle_at(2) for a handle of a path.
const HANDLE_OF: &str = "
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
handle, mount = (ctypes.c_uint32 * 64)(128), ctypes.c_int()
failed = libc.name_to_handle_at(-100, sys.argv[1].encode(), handle, ctypes.byref(mount), 0)
refused = failed and ctypes.get_errno() == errno.EOPNOTSUPP
print('EOPNOTSUPP' if refused else failed and errno.errorcode[ctypes.get_errno()] or 'given')
";

#[test]
fn bypass_is_shown_and_requested_and_the_options_of_up_are_kept() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("bypass");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("bypass", seconds(200), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-bypass");
    let more = ["--bypass-size", "1M", "--bypass-streams", "off"].map(String::from).to_vec();
    let cell = Cell::up(&netns, scratch.path(), &CellOptions { more, ..CellOptions::on_loopback() });
    let film = cell.mount().join("film");
    let path = film.to_str().unwrap().to_owned();
    let told = |words: &[&str]| -> serde_json::Value {
        serde_json::from_str(&command(&netns, &[&["--json"], words].concat())).unwrap()
    };
    let shown = || told(&["fs", "bypass", &path])[0].clone();
    let data = vec![b'x'; 2 << 20];
    fs::write(&film, &data).unwrap();
    assert_eq!(
        shown(),
        serde_json::json!({ "path": path, "request": "auto", "bypassed": true, "reason": "length" })
    );
    // The kernel may have its pages still.
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    assert!(fs::read(&film).unwrap() == data);
    let mount = told(&["status"])["mounts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|mount| mount["directory"] == cell.mount().to_str().unwrap())
        .unwrap()
        .clone();
    assert_eq!(
        (mount["bypassed_files"].as_u64(), mount["bypassed_bytes"].as_u64()),
        (Some(1), Some(2 << 20))
    );
    assert!(command(&netns, &["status"]).contains("2.00 MiB of 1 open files read past its cache"));
    assert_eq!(command(&netns, &["fs", "bypass", "off", &path]), "");
    assert_eq!((shown()["bypassed"].as_bool(), shown()["request"].as_str()), (Some(false), Some("off")));
    let text = command(&netns, &["fs", "bypass", &path]);
    assert_eq!(text.trim(), format!("{path} is cached by its request (request: off)"));
    cell.stop();
    // A request ends with the mount, an option does not.
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::on_loopback());
    assert_eq!((shown()["request"].as_str(), shown()["reason"].as_str()), (Some("auto"), Some("length")));
    cell.stop();
}

/// Under a server that is gone every other command about the path would wait for it.
#[test]
fn a_path_is_explained_to_a_user_although_the_server_was_killed() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("explain");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("explain", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-explain");
    let mut cell = Cell::serve(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let mount = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "afs", &["--allow-other"]);
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", 61_003);
    alice.log_in(CELL, "127.0.0.1");
    let path = mount.path().join("file").display().to_string();
    let read = alice.sh(mount.path(), "echo hello > $A/file && cat $A/file");
    assert!(read.status.success(), "{read:?}");
    let told = |path: &str| -> serde_json::Value {
        let told: serde_json::Value =
            serde_json::from_str(&alice.andrew(&["--json", "fs", "explain", path])).unwrap();
        told[0].clone()
    };
    let before = told(&path);
    assert_eq!(before["rights"]["user"], "alice", "{before}");
    assert_eq!((&before["promise"]["state"], &before["data"]["cached_bytes"]), (&"held".into(), &6.into()));
    assert!(before["servers"][0]["unreachable_seconds"].is_null(), "{before}");
    cell.kill();
    // The mount notices.
    assert!(!alice.sh(mount.path(), "timeout -s KILL 25 mkdir $A/folder").status.success());
    let after = told(&path);
    let server = &after["servers"][0];
    assert!(server["unreachable_seconds"].is_u64() && server["is_used"] == true, "{after}");
    assert!(server["errors"].as_array().is_some_and(|errors| !errors.is_empty()), "{after}");
    assert_eq!(after["data"]["cached_bytes"], 6);
    let text = alice.andrew(&["fs", "explain", &path]);
    assert!(text.contains("has not answered for") && text.contains("6 of 6 bytes cached"), "{text}");
    let unknown = told(&mount.path().join("none/deeper").display().to_string());
    assert!(unknown["unknown"].is_string() && unknown["data"].is_null(), "{unknown}");
}

#[test]
fn what_a_user_has_pinned_is_read_although_the_server_was_killed() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("pins");
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("pins", seconds(300), move || unmount_below(&folder));
    let netns = Netns::fresh("andrew-pins");
    let mut cell = Cell::serve(&netns, scratch.path(), &CellOptions::at("127.0.0.1", "rlidwka"));
    let tree = scratch.path().join("afs/tree");
    let shown = tree.to_str().unwrap();
    let writer = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "afs", &[]);
    fs::create_dir_all(tree.join("below")).unwrap();
    fs::write(tree.join("below/file"), vec![b'x'; 3 << 20]).unwrap();
    fs::write(tree.join("small"), "small").unwrap();
    let _ = command(&netns, &["fs", "pin", shown, "--recursive"]);
    drop(writer);
    // Another process, with the cache of the first one.
    let mount = Mount::new(&netns, CELL, "127.0.0.1", scratch.path(), "afs", &["--cache-size", "100M"]);
    let complete = || -> Option<serde_json::Value> {
        let told: serde_json::Value =
            serde_json::from_str(&command(&netns, &["fs", "pins", "--json"])).unwrap();
        let ours = |pin: &&serde_json::Value| pin["directory"] == mount.path().to_str().unwrap();
        let pin = told.as_array().unwrap().iter().find(ours)?.clone();
        (pin["state"] == "complete").then_some(pin)
    };
    let pin = until("the pin is complete", seconds(60), complete);
    assert_eq!((&pin["path"], &pin["uid"], &pin["is_recursive"]), (&"tree".into(), &0.into(), &true.into()));
    assert_eq!((pin["objects"].as_u64(), pin["bytes"].as_u64()), (Some(4), Some((3 << 20) + 5)), "{pin}");
    let text = command(&netns, &["fs", "pins"]);
    assert!(text.contains("tree, with all below\n  complete: 4 objects, 3.0 MiB"), "{text}");
    let again = try_command(&netns, &["fs", "pin", shown]);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("is not pinned: it is pinned already"),
        "{again:?}"
    );
    cell.kill();
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    assert!(fs::read(tree.join("below/file")).unwrap() == vec![b'x'; 3 << 20]);
    assert_eq!(fs::read_to_string(tree.join("small")).unwrap(), "small");
    let _ = command(&netns, &["fs", "unpin", shown]);
    let gone = try_command(&netns, &["fs", "unpin", shown]);
    assert!(String::from_utf8_lossy(&gone.stderr).contains("it is not pinned by this user"), "{gone:?}");
}
