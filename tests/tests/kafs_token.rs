//! The AFS client of the Linux kernel, in an emulated machine, with Kerberos tickets in an Andrew cell.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use andrew_tests::live::cell::{Cell, CellOptions, command};
use andrew_tests::live::guest::Guest;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

/// The guest gets its tickets itself, from the same KDC as the other hosts, and its kernel makes tokens of them. `as
/// USER COMMANDS` runs them in a session keyring with the user's token and nothing else.
const SCRIPT: &str = r#"
export KRB5_CONFIG=/share/krb5.conf
as() {
    KRB5CCNAME=FILE:/tmp/$1.cc keyctl session - bash -euc '
        kinit -k -t /share/$0.keytab $0
        aklog-kafs kafs.test KAFS.TEST
        '"$2" "$1"
}
denied() { if "$@" 2>/tmp/said; then echo "not denied: $*"; exit 1; fi; grep -q "Permission denied" /tmp/said; }
# A token that counts no more may be refused in more than one way.
refused() { if "$@" 2>/tmp/said; then echo "not refused: $*"; exit 1; fi; cat /tmp/said; }
export -f denied refused

nobody() {
    test "$(cat /afs/public)" = "for everybody"
    denied ls /afs/home
    denied cat /afs/home/letter
    denied touch /afs/home/new
}
nobody
echo nobody is denied

as alice '
    keyctl show @s | grep -q "rxrpc: afs@kafs.test"
    cd /afs/home
    test "$(cat letter)" = "for alice"
    echo one > a; echo two >> a; test "$(cat a)" = "$(printf "one\ntwo")"
    mkdir d; mv a d/b; ln -s b d/s; test "$(readlink d/s)" = b; test "$(cat d/s)" = "$(cat d/b)"
    chmod 640 d/b; test "$(stat -c %a d/b)" = 640
    dd if=/dev/urandom of=/tmp/r bs=64k count=64 2>/dev/null
    cp /tmp/r r; sync; echo 3 > /proc/sys/vm/drop_caches; cmp /tmp/r r
    truncate -s 100001 r; truncate -s 100001 /tmp/r; cmp /tmp/r r
    sha256sum < r > sum
    touch gone; rm gone
'
echo alice has been here

as bob '
    test "$(cat /afs/public)" = "for everybody"
    denied ls /afs/home
    denied cat /afs/home/letter
    denied cat /afs/home/r
    denied touch /afs/home/new
    denied rm /afs/home/letter
'
echo bob is denied
# What the kernel has cached for alice is not for others.
nobody

# A mode closes a directory, and its snapshot with it.
test "$(cat /afs/shared/letter)" = "for all"
test "$(cat /afs/then/shared/letter)" = "for all"
as alice '
    mkdir -m 700 /afs/shared/own
    chmod go-rwx /afs/shared
    test "$(cat /afs/then/shared/letter)" = "for all"
'
for try in $(seq 100); do
    if ! cat /afs/shared/letter /afs/then/shared/letter > /tmp/said 2>&1; then break; fi
    sleep 0.1
done
denied cat /afs/shared/letter
denied ls /afs/shared/own
denied cat /afs/then/shared/letter

# Tickets of before a revocation count no more, in the session that has them; those of a new login do.
as alice '
    for n in 1 2 3 4; do cat /afs/home/letter > /afs/home/after$n; done
    touch /share/ready
    until test -e /share/revoked; do sleep 0.2; done
    for try in $(seq 100); do
        if ! touch /afs/home/new 2>/dev/null; then break; fi
        sleep 0.1
    done
    refused touch /afs/home/new
    refused mv /afs/home/after1 /afs/home/after5
    echo 3 > /proc/sys/vm/drop_caches
    refused cat /afs/home/after2
'
# A ticket of the second of the revocation counts no more either.
sleep 1
as alice '
    test "$(cat /afs/home/after3)" = "for alice"
    rm /afs/home/after?
    rm -f /afs/home/new
'
echo done
"#;

#[test]
fn the_kernels_client_is_the_user_of_the_tickets() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs, Need::Guest]) {
        return;
    }
    let scratch = Scratch::new("kafs-token");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("kafs_token", seconds(1500), move || unmount_below(&folder));
    // Only the KDC of this cell is used, and its key.
    let hosts = Hosts::with_servers(scratch.path(), 19, CELL);
    let ours = hosts.address(6);
    let cell = serve(&hosts, scratch.path(), &ours);
    let mount = Mount::new(&hosts.netns("cl1"), CELL, &ours, scratch.path(), "ours", &[]);
    let home = mount.path().join("home");
    let tokens = scratch.folder("tokens");
    let log_in = |user: &str| {
        let words = ["login", "--kerberos", "--cell", CELL];
        let said = hosts.andrew_with("cl1", &hosts.kinit(user), &tokens, &words);
        assert!(said.contains(&format!("{user} is logged in")), "{said}");
    };

    log_in("admin");
    fs::write(mount.path().join("public"), "for everybody\n").unwrap();
    fs::create_dir(&home).unwrap();
    let list = ["fs", "setacl", "--clear", "--dir", home.to_str().unwrap(), "--acl", "alice", "rlidwk"];
    let _ = command(&hosts.netns("cl1"), &list);
    let shared = mount.path().join("shared");
    fs::create_dir(&shared).unwrap();
    let list = ["fs", "setacl", shared.to_str().unwrap(), "alice", "all", "system:anyuser", "rl"];
    let _ = command(&hosts.netns("cl1"), &list);
    log_in("alice");
    fs::write(home.join("letter"), "for alice\n").unwrap();
    fs::write(shared.join("letter"), "for all\n").unwrap();
    let state = scratch.path().join("state").display().to_string();
    let vos = |words: &[&str]| command(&hosts.netns("venus"), &[&["vos", "--state", &state], words].concat());
    vos(&["setmodes", "root.cell", "close"]);
    vos(&["snapshot", "create", "root.cell", "one"]);
    log_in("admin");
    let then = mount.path().join("then").display().to_string();
    let _ = command(&hosts.netns("cl1"), &["fs", "mkmount", &then, "root.cell.one"]);
    log_in("alice");

    let share = share(&hosts, &scratch);
    let guest = Guest::new(&hosts, CELL, &ours).with_share(&share);
    let revoke = || {
        until("a session of alice in the guest", seconds(900), || share.join("ready").exists().then_some(()));
        let _ = command(&hosts.netns("venus"), &["revoke", "alice", "--state", &state]);
        fs::write(share.join("revoked"), "").unwrap();
    };
    let output = std::thread::scope(|scope| {
        scope.spawn(revoke);
        guest.run(SCRIPT)
    });
    assert!(output.status.success() && output.stdout.ends_with(b"done\n"), "{}", said(&output));
    // The names that it wrote are those that Andrew's mount reads, with a token of its own since then.
    log_in("alice");
    let names = andrew_tests::live::files::names(&home);
    assert_eq!(names, ["d", "letter", "r", "sum"]);
    assert_eq!(fs::read_to_string(home.join("d/b")).unwrap(), "one\ntwo\n");
    let mut sum = Command::new("sha256sum");
    sum.arg(home.join("r"));
    assert_eq!(run(sum, seconds(60))[..64], fs::read_to_string(home.join("sum")).unwrap()[..64]);

    everything_was_encrypted(cell.state(), &guest.address());
}

/// A cell on the host `venus` whose key is that of the KDC's service, with the users alice and bob; all its calls are
/// recorded.
fn serve(hosts: &Hosts, folder: &Path, address: &str) -> Cell {
    let venus = hosts.netns("venus");
    let keytab = hosts.state().join("kdc/afs.keytab").to_string_lossy().into_owned();
    let state = folder.join("state").to_string_lossy().into_owned();
    let _ = command(&venus, &["key", "add", "--state", &state, "--keytab", &keytab]);
    fs::write(folder.join("state/security.toml"), "[audit]\nreads = true\n").unwrap();
    let mut options = CellOptions::at(address, "rl");
    options.cell = CELL.to_owned();
    let cell = Cell::serve(&venus, folder, &options);
    let _ = command(&venus, &["pts", "createuser", "--state", &state, "alice", "bob"]);
    cell
}

/// The files that the guest needs to get tickets.
fn share(hosts: &Hosts, scratch: &Scratch) -> std::path::PathBuf {
    let share = scratch.folder("share");
    for file in ["krb5.conf", "kdc/alice.keytab", "kdc/bob.keytab"] {
        let from = hosts.state().join(file);
        fs::copy(&from, share.join(from.file_name().unwrap())).unwrap();
    }
    share
}

/// Checks the audit log: of the guest's calls, all those with a token came by rxkad with its highest level.
fn everything_was_encrypted(state: &Path, guest: &str) {
    let calls = until("the guest's calls in the audit log", seconds(30), || {
        let calls = calls_from(state, guest);
        calls.iter().any(|call| call["who"] == "bob").then_some(calls)
    });
    let whos = [("alice", "rxkad/crypt"), ("bob", "rxkad/crypt"), ("(anybody)", "null")];
    for call in &calls {
        let known = whos.iter().find(|(who, _)| call["who"] == *who);
        assert!(known.is_some_and(|(_, by)| call["by"] == *by), "{call}");
    }
    // The kernel queries the access rights and refuses by itself: the server has no refusals to record.
    for (who, _) in whos {
        let theirs = || calls.iter().filter(|call| call["who"] == who);
        assert!(theirs().next().is_some(), "{who}: {calls:#?}");
        for change in
            ["CreateFile", "StoreData64", "MakeDir", "Symlink", "Rename", "StoreStatus", "RemoveFile"]
        {
            let made = theirs().any(|call| call["call"] == change && call["code"] == 0);
            assert_eq!(made, who == "alice", "{who}: {change}: {calls:#?}");
        }
    }
}

fn calls_from(state: &Path, address: &str) -> Vec<Value> {
    let files = ["audit.log", "audit-reads.log"].map(|name| fs::read_to_string(state.join(name)));
    let log: String = files.into_iter().filter_map(Result::ok).collect();
    let whole = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let records = whole.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let from = format!("{address}:");
    records.filter(|record| record["peer"].as_str().is_some_and(|peer| peer.starts_with(&from))).collect()
}

fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// The cell whose name is that of its realm in lower case.
const CELL: &str = "kafs.test";
