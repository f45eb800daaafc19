//! Access control of real mounts: what each user sees, and the parts of a cell that have no effect on a machine.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use andrew_tests::live::cell::{CELL, Cell, CellOptions, andrew, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::Netns;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::residents::RESIDENT;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::user::User;
use andrew_tests::live::watchdog::Watchdog;

const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;
/// `fusermount3` mounts for users with an account: every machine has this one.
const NOBODY: u32 = 65_534;
const SERVER: &str = "127.0.0.1";

/// A folder that all users may enter, and a watchdog that unmounts its mounts if the test hangs.
fn folder(name: &'static str) -> (Scratch, Watchdog) {
    let scratch = Scratch::new(name);
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let below = scratch.path().to_owned();
    (scratch, Watchdog::new(name, seconds(400), move || unmount_below(&below)))
}

fn for_all() -> CellOptions {
    CellOptions { more: vec!["--allow-other".into()], ..CellOptions::at(SERVER, "rl") }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&*output.stdout, &*output.stderr].concat()).trim().to_owned()
}

/// Commands that access something in `$A` that no right allows.
const FORBIDDEN: [&str; 14] = [
    "cat $A/secret",
    "tail -c 1 $A/secret",
    "stat $A/secret",
    "test -e $A/secret",
    "ls $A",
    "ls $A/sub",
    "ls -d $A/sub/..",
    "cd $A && ls",
    "readlink $A/link",
    "$A/tool",
    // Maps the program, which needs no right to execute it.
    "$(ls /lib64/ld-linux*.so.*) $A/tool",
    "ln $A/secret $A/../public/taken && cat $A/../public/taken",
    "mv $A/secret $A/../public/taken",
    "echo x > $A/secret",
];

fn sees_nothing(user: &User<'_>, path: &Path, when: &str) {
    for line in FORBIDDEN {
        let output = user.sh(path, line);
        assert!(!output.status.success(), "{line}, {when}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{line}, {when}: {}", said(&output));
    }
}

#[test]
fn data_read_by_one_user_is_not_read_listed_or_seen_by_others() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let (scratch, _watchdog) = folder("guarded");
    let netns = Netns::fresh("andrew-guarded");
    let cell = Cell::up(&netns, scratch.path(), &for_all());
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let bob = User::new(&netns, cell.state(), scratch.path(), "bob", BOB);
    let (hers, public) = (cell.mount().join("alice"), cell.mount().join("public"));
    fs::create_dir(&hers).unwrap();
    fs::create_dir(&public).unwrap();
    let acl = |path: &Path, entries: &[&str]| {
        command(&netns, &[&["fs", "setacl", path.to_str().unwrap()], entries].concat())
    };
    let _ = acl(&hers, &["alice", "all", "system:anyuser", "none"]);
    let _ = acl(&public, &["alice", "all", "bob", "all"]);
    alice.log_in(CELL, SERVER);
    let made = "mkdir $A/sub && head -c 1000000 /dev/zero > $A/secret && echo secret >> $A/secret && cp /usr/bin/true $A/tool && ln -s secret $A/link";
    let output = alice.sh(&hers, made);
    assert!(output.status.success(), "{}", said(&output));
    // Open throughout: its pages and attributes are in the kernel.
    let mut holding = alice.command("sh", &["-c", "exec 3< $A/secret; exec sleep 300"]);
    let mut holding = holding.env("A", &hers).stdout(Stdio::null()).spawn().unwrap();
    let look = "grep -qa secret $A/secret && stat $A/secret && ls -l $A $A/sub && readlink $A/link && $A/tool && $(ls /lib64/ld-linux*.so.*) $A/tool";
    for round in 0..4 {
        // First without a token, then with a token of his own.
        if round == 2 {
            bob.log_in(CELL, SERVER);
            assert!(bob.sh(&public, "echo mine > $A/mine && cat $A/mine").status.success());
        }
        let output = alice.sh(&hers, look);
        assert!(output.status.success(), "{}", said(&output));
        sees_nothing(&bob, &hers, &format!("round {round}"));
    }
    let _ = alice.andrew(&["logout"]);
    sees_nothing(&alice, &hers, "after her own logout");
    sees_nothing(&bob, &hers, "after her logout");
    alice.log_in(CELL, SERVER);
    assert!(alice.sh(&hers, look).status.success());
    sees_nothing(&bob, &hers, "after her return");
    let _ = holding.kill();
    let _ = holding.wait();
    cell.stop();
}

/// `andrew up` of root with the other users of the machine, and a mount beside it: after a restart of either nobody has to log in again,
/// and who had logged out stays logged out.
#[test]
fn a_restart_of_a_mount_keeps_the_tokens_of_its_users() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let (scratch, _watchdog) = folder("kept-tokens");
    let netns = Netns::fresh("andrew-kept-tokens");
    let cell = Cell::up(&netns, scratch.path(), &for_all());
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", ALICE);
    let bob = User::new(&netns, cell.state(), scratch.path(), "bob", BOB);
    for (user, name) in [(&alice, "alice"), (&bob, "bob")] {
        let his = cell.mount().join(name);
        fs::create_dir(&his).unwrap();
        let _ =
            command(&netns, &["fs", "setacl", his.to_str().unwrap(), name, "all", "system:anyuser", "none"]);
        user.log_in(CELL, SERVER);
    }
    let mount = || Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &["--allow-other"]);
    let mut other = mount();
    let tokens = |user: &User<'_>| user.andrew(&["tokens"]);
    assert!(
        tokens(&alice).contains(&format!("not in use at {}", other.path().display())),
        "{}",
        tokens(&alice)
    );
    [&alice, &bob].into_iter().for_each(|user| user.log_in(CELL, SERVER));
    assert!(!tokens(&alice).contains("not in use at"), "{}", tokens(&alice));
    let hers = |cell: &Cell| cell.mount().join("alice");
    assert!(alice.sh(&hers(&cell), "echo secret > $A/secret").status.success());
    let _ = bob.andrew(&["logout"]);
    cell.stop();
    drop(other);
    let mut cell = Cell::up(&netns, scratch.path(), &for_all());
    other = mount();
    for top in [cell.mount().to_owned(), other.path().to_owned()] {
        let output = alice.sh(&top, "cat $A/alice/secret");
        assert!(output.status.success() && said(&output) == "secret", "{}", said(&output));
        assert!(!bob.sh(&top, "ls $A/bob").status.success(), "he had logged out");
    }
    // Also a mount that was killed.
    other.kill();
    drop(other);
    cell.kill();
    let cell = Cell::up(&netns, scratch.path(), &for_all());
    assert!(alice.sh(cell.mount(), "cat $A/alice/secret").status.success());
    let _ = alice.andrew(&["logout"]);
    assert!(!alice.sh(cell.mount(), "cat $A/alice/secret").status.success());
    cell.stop();
}

/// Run by root in separate namespaces, with the program, a folder, the cell's network and her home. `/dev/fuse` may be
/// opened by every user on an ordinary machine, and by root alone on some: here every user may.
const NAMESPACE: &str = r#"
set -e
mknod "$2/fuse" c 10 229 && chmod 666 "$2/fuse" && mount --bind "$2/fuse" /dev/fuse
cd /
export HOME="$3"
as() { uid=$1; shift; setpriv --reuid="$uid" --regid="$uid" --clear-groups "$@"; }
"#;

const OF_HER_OWN: &str = r#"
as 65534 "$1" mount --cell live.test --servers 127.0.0.1 --cache "$3/cache" --detach "$3/afs" > /dev/null
as 65534 "$1" login alice --cell live.test --servers 127.0.0.1 --passphrase-file "$3/passphrase" > /dev/null
as 65534 cat "$3/afs/alice/secret"
grep " $3/afs " /proc/self/mountinfo
as 65534 stat -c 'mode %a' "$3/afs/id"
as 65534 sh -c '"$HOME/afs/id" -u'
for line in "cat $3/afs/alice/secret" "ls $3/afs" "stat $3/afs/alice/secret"; do
    if as 61002 $line 2> /dev/null; then echo "another user: $line"; fi
    if $line 2> /dev/null; then echo "root: $line"; fi
done
as 65534 "$1" umount "$3/afs"
"#;

/// The login happens before the mounts.
const KEPT: &str = r#"
her_mount() { as 65534 "$1" mount --cell live.test --servers 127.0.0.1 --cache "$3/cache" --detach "$3/afs" > /dev/null; }
as 65534 "$1" login alice --cell live.test --servers 127.0.0.1 --passphrase-file "$3/passphrase" > /dev/null
her_mount "$@"
as 65534 cat "$3/afs/alice/secret"
as 65534 "$1" umount "$3/afs"
as 65534 "$1" logout > /dev/null
her_mount "$@"
as 65534 cat "$3/afs/alice/secret" 2> /dev/null || echo "nobody in particular"
as 65534 "$1" umount "$3/afs"
"#;

#[test]
fn a_mount_begins_with_the_token_that_its_user_has_kept() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    assert_eq!(on_her_own_mounts("kept", KEPT), "of alice\nnobody in particular\n");
}

#[test]
fn a_users_own_mount_is_for_the_user_alone() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let said = on_her_own_mounts("guarded-own", OF_HER_OWN);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert_eq!(lines[0], "of alice");
    assert!(lines[1].contains("nosuid") && lines[1].contains("nodev"), "{said}");
    assert_eq!(lines[2..], ["mode 6755", "65534"]);
}

/// Output of a script that mounts as an ordinary user with a passphrase and a secret in the cell.
fn on_her_own_mounts(name: &'static str, script: &str) -> String {
    let (scratch, _watchdog) = folder(name);
    let netns = Netns::fresh(&format!("andrew-{name}"));
    let cell = Cell::up(&netns, scratch.path(), &for_all());
    let alice = User::new(&netns, cell.state(), scratch.path(), "alice", NOBODY);
    let hers = cell.mount().join("alice");
    fs::create_dir(&hers).unwrap();
    fs::write(hers.join("secret"), "of alice\n").unwrap();
    let _ =
        command(&netns, &["fs", "setacl", hers.to_str().unwrap(), "alice", "all", "system:anyuser", "none"]);
    with_powers(cell.mount());
    let mut shell = netns.command("unshare");
    // No process outlives the line.
    shell.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"]);
    shell.args(["sh", "-c", &[NAMESPACE, script].concat(), "sh"]);
    shell.arg(scratch.copy(&andrew())).arg(scratch.path()).arg(alice.home());
    let said = run(shell, seconds(200));
    cell.stop();
    said
}

/// Stores a program of the administrator's with set-id bits that prints the user it runs as.
fn with_powers(top: &Path) {
    fs::copy("/usr/bin/id", top.join("id")).unwrap();
    fs::set_permissions(top.join("id"), fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(top.join("id")).unwrap().mode() & 0o7777, 0o6755, "the cell has them");
}

#[test]
fn set_id_bits_and_devices_of_a_cell_have_no_power() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let (scratch, _watchdog) = folder("powers");
    let netns = Netns::fresh("andrew-powers");
    let cell = Cell::up(&netns, scratch.path(), &for_all());
    let bob = User::new(&netns, cell.state(), scratch.path(), "bob", BOB);
    with_powers(cell.mount());
    let output = bob.sh(cell.mount(), "$A/id -u && $A/id -g");
    assert_eq!(said(&output), format!("{BOB}\n{BOB}"));
    let mut device = Command::new("mknod");
    device.arg(cell.mount().join("null")).args(["c", "1", "3"]);
    assert!(!device.output().unwrap().status.success());
    assert!(!cell.mount().join("null").exists());
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let at = format!(" {} ", cell.mount().display());
    let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
    assert!(line.contains("nosuid") && line.contains("nodev"), "{line}");
    cell.stop();
}

fn for_everybody(netns: &Netns, folder: &Path) {
    let _ = command(netns, &["fs", "setacl", folder.to_str().unwrap(), "system:anyuser", "all"]);
}

/// Inode numbers of a file, a directory, a link and the root of another volume.
fn numbers(top: &Path) -> Vec<u64> {
    let number = |name: &str| fs::symlink_metadata(top.join(name)).unwrap().ino();
    ["file", "dir", "dir/below", "link", "other", "other/file"].iter().map(|name| number(name)).collect()
}

#[test]
fn inode_numbers_are_the_same_on_every_mount_and_after_restarts() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let (scratch, _watchdog) = folder("numbers");
    let netns = Netns::fresh("andrew-numbers");
    let options = CellOptions::at(SERVER, "rlidwka");
    let cell = Cell::up(&netns, scratch.path(), &options);
    let state = cell.state().to_str().unwrap().to_owned();
    let _ = command(&netns, &["vos", "--state", &state, "create", "other"]);
    let top = cell.mount().to_owned();
    let _ = command(&netns, &["fs", "mkmount", top.join("other").to_str().unwrap(), "other"]);
    for_everybody(&netns, &top.join("other"));
    fs::create_dir(top.join("dir")).unwrap();
    for name in ["file", "dir/below", "other/file"] {
        fs::write(top.join(name), name).unwrap();
    }
    symlink("file", top.join("link")).unwrap();
    let wanted = numbers(&top);
    let mounted = || Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &[]);
    let other = mounted();
    assert_eq!(numbers(other.path()), wanted, "another mount");
    drop(other);
    let other = mounted();
    assert_eq!(numbers(other.path()), wanted, "after a restart");
    drop(other);
    fs::remove_dir_all(scratch.path().join("other.cache")).unwrap();
    let other = mounted();
    assert_eq!(numbers(other.path()), wanted, "after a restart without its cache");
    drop(other);
    cell.stop();
    let cell = Cell::up(&netns, scratch.path(), &options);
    assert_eq!(numbers(cell.mount()), wanted, "after a restart of the cell");
    cell.stop();
}

/// The error number of a failed operation.
fn refused<T>(result: std::io::Result<T>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

#[test]
fn a_volume_that_its_server_has_lost_is_no_device_and_harms_nothing_else() {
    const ENODEV: Option<i32> = Some(19);
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let (scratch, _watchdog) = folder("lost-volume");
    let netns = Netns::fresh("andrew-lost");
    let cell = Cell::up(&netns, scratch.path(), &CellOptions::at(SERVER, "rlidwka"));
    let state = cell.state().to_str().unwrap().to_owned();
    let top = cell.mount().to_owned();
    for name in ["lost", "kept"] {
        let _ = command(&netns, &["vos", "--state", &state, "create", name]);
        let _ = command(&netns, &["fs", "mkmount", top.join(name).to_str().unwrap(), name]);
        for_everybody(&netns, &top.join(name));
        fs::write(top.join(name).join("file"), name).unwrap();
    }
    let other = Mount::new(&netns, CELL, SERVER, scratch.path(), "other", &[]);
    let known = other.path().join("lost/file");
    assert_eq!(fs::read_to_string(&known).unwrap(), "lost");
    let open = fs::File::options().append(true).open(&known).unwrap();
    let _ = command(&netns, &["vos", "--state", &state, "remove", "-id", "lost"]);
    for mount in [&top, other.path()] {
        let lost = mount.join("lost");
        assert_eq!(refused(fs::read_to_string(lost.join("file"))), ENODEV);
        assert_eq!(refused(fs::metadata(lost.join("file"))), ENODEV);
        assert_eq!(refused(fs::write(lost.join("new"), "x")), ENODEV);
        assert_eq!(refused(fs::remove_file(lost.join("file"))), ENODEV);
        assert_eq!(refused(fs::read_dir(&lost).and_then(|mut names| names.next().transpose())), ENODEV);
        // The names around it, and other volumes, are unchanged.
        let mut names: Vec<_> =
            fs::read_dir(mount).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["kept", "lost", RESIDENT]);
        assert_eq!(fs::read_to_string(mount.join("kept/file")).unwrap(), "kept");
        fs::write(mount.join("kept/file"), "kept").unwrap();
    }
    drop(open);
    let _ = command(&netns, &["fs", "rmmount", top.join("lost").to_str().unwrap()]);
    assert!(!other.path().join("lost").exists());
    drop(other);
    cell.stop();
}
