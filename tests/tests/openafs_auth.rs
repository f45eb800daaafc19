//! OpenAFS's tools in an Andrew cell, authenticated: with the cell's key, and with Kerberos tickets.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::io::ErrorKind;

use andrew_tests::live::cell::{CELL, Cell, CellOptions, command};
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;

/// A host with the cell's key may do everything, in every service that OpenAFS's tools call.
#[test]
fn localauth_works_with_the_key_file_of_our_cell() {
    if !all_there(&[Need::Root, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-localauth");
    let hosts = Hosts::around_our_cell(scratch.path(), 16, CELL);
    let vice = hosts.address(5);
    let mut options = CellOptions::at(&vice, "rl");
    options.more = vec!["--rxkad".to_owned()];
    let cell = Cell::serve(&hosts.netns("vice"), scratch.path(), &options);
    hosts.give_keys("cl1", CELL, &vice, &cell.state().join("keys/KeyFileExt"));

    let run = |line: &str| hosts.tool("cl1", &words(line));
    // Calls to the protection service are encrypted, those of vos only with `-encrypt`.
    run(&format!("vos create {vice} a made -localauth"));
    assert!(run("vos examine made -localauth -encrypt").contains("On-line"));
    run("pts createuser carol -localauth");
    run("pts creategroup admin:staff -owner admin -localauth");
    run("pts adduser carol admin:staff -localauth");
    assert!(run("pts membership admin:staff -localauth").contains("carol"));
    run("pts removeuser carol admin:staff -localauth");
    assert!(!run("pts membership admin:staff -localauth").contains("carol"));
    let everybody = run("pts listentries -localauth");
    assert!(everybody.contains("carol") && everybody.contains("anonymous"), "{everybody}");
    run(&format!("vos remove {vice} a made -localauth -encrypt"));
    assert!(!run("vos listvldb -localauth").contains("made"));

    people(&hosts);
    overseer(&hosts, &vice);

    // A host without the key is anonymous.
    for refused in [format!("vos create {vice} a other -noauth"), "pts createuser dave -noauth".to_owned()] {
        let output = hosts.try_tool("cl2", &words(&refused));
        assert!(!output.status.success(), "{refused}: {output:?}");
    }
}

/// Every subcommand of OpenAFS's `pts`. The host `cl1` has the cell's key, the host `cl2` has not.
fn people(hosts: &Hosts) {
    let run = |line: &str| hosts.tool("cl1", &words(&format!("pts {line} -localauth")));
    run("createuser -name erin -id 77");
    assert!(run("examine erin").contains("Name: erin, id: 77, owner: system:administrators"));
    run("creategroup -name erin:circle -owner erin");
    run("adduser -user erin carol -group erin:circle");
    assert!(run("examine -nameorid erin:circle").contains("membership: 2"));
    assert!(run("listowned erin").contains("erin:circle"));
    run("setfields -nameorid erin:circle -access S-M-- -groupquota 5");
    run("setfields erin -groupquota 3");
    assert!(run("examine erin").contains("group quota: 3"));
    run("rename -oldname erin:circle -newname erin:ring");
    run("chown -name erin:ring -owner carol");
    assert!(run("membership erin").contains("carol:ring"));
    assert!(run("listentries -groups").contains("carol:ring"));
    run("setmax -group -400 -user 900");
    assert!(run("listmax").contains("Max user id is 900 and max group id is -400"));
    run("createuser frank");
    assert!(run("examine frank").contains("id: 901"));
    run("delete carol:ring frank");
    assert!(!run("membership erin").contains("carol:ring"));
    run("delete erin");
    let again = hosts.try_tool("cl1", &words("pts createuser carol -localauth"));
    assert!(String::from_utf8_lossy(&again.stderr).contains("already exists"), "{again:?}");
    let unknown = hosts.try_tool("cl1", &words("pts examine erin -localauth"));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("User or group doesn't exist"), "{unknown:?}");
    // An anonymous caller may translate names and see public entries.
    let stranger = hosts.tool("cl2", &words("pts examine carol -noauth"));
    assert!(stranger.contains("Name: carol"), "{stranger}");
}

/// Output of OpenAFS's `bos` on Andrew servers. The host `cl1` has the cell's key, the host `cl2` has not.
fn overseer(hosts: &Hosts, vice: &str) {
    let run = |words: &[&str]| hosts.tool("cl1", &[&["bos"], words].concat());
    let status = "Instance ptserver, currently running normally.\n\
                  Instance vlserver, currently running normally.\n\
                  Instance fs, currently running normally.\n    \
                  Auxiliary status is: file server running.\n";
    assert_eq!(run(&["status", vice, "-localauth"]), status);
    assert_eq!(hosts.tool("cl2", &["bos", "status", vice, "-noauth"]), status);
    let long = run(&["status", vice, "fs", "-long", "-localauth"]);
    for said in ["(type is fs) currently running normally", "(1 proc starts)", "Command 1 is 'andrew'"] {
        assert!(long.contains(said), "{long}");
    }
    assert!(!long.contains("core") && !long.contains("Last exit"), "{long}");
    let all = run(&["listhosts", vice, "-localauth"]);
    assert_eq!(all, format!("Cell name is {CELL}\n    Host 1 is {vice}\n"));
    assert_eq!(run(&["listusers", vice, "-localauth"]), "SUsers are: admin \n");
    assert_eq!(run(&["getrestricted", vice, "-localauth"]), "Restricted mode is on\n");
    assert!(run(&["getrestart", vice, "-localauth"]).contains("restarts never"));
    assert!(run(&["getdate", vice, "fileserver", "-localauth"]).contains("does not exist"));

    // A caller with the key is told that the call does not exist, any other that it is not authorized.
    let said = |host: &str, words: &[&str]| {
        let output = hosts.try_tool(host, &[&["bos"], words].concat());
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
    };
    for words in [&["shutdown", vice, "fs"][..], &["restart", vice, "-all"]] {
        let with_key = said("cl1", &[words, &["-localauth"]].concat());
        assert!(with_key.contains("RPC interface mismatch"), "{words:?}: {with_key}");
        let without = said("cl2", &[words, &["-noauth"]].concat());
        assert!(without.contains("you are not authorized for this operation"), "{words:?}: {without}");
    }
    assert_eq!(run(&["listkeys", vice, "-localauth"]), "All done.\n");
    let log = said("cl1", &["getlog", vice, "FileLog", "-localauth"]);
    assert!(log.contains("no such entity"), "{log}");
    let exec = said("cl1", &["exec", vice, "true", "-localauth"]);
    assert!(exec.contains("you are not authorized for this operation"), "{exec}");
    assert_eq!(run(&["status", vice, "-localauth"]), status);
}

/// A cell that shares its key with a Kerberos realm treats the realm's users as its own.
#[test]
fn kerberos_users_have_their_rights_in_our_cell() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let scratch = Scratch::new("openafs-kerberos");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("openafs_kerberos", seconds(600), move || unmount_below(&folder));
    // Only the KDC of this cell is used, and its key.
    let hosts = Hosts::with_servers(scratch.path(), 17, REALM_CELL);
    let (venus, ours) = (hosts.netns("venus"), hosts.address(6));
    let keytab = hosts.state().join("kdc/afs.keytab").to_string_lossy().into_owned();
    let state = scratch.path().join("state").to_string_lossy().into_owned();
    let listed = command(&venus, &["key", "add", "--state", &state, "--keytab", &keytab]);
    assert!(listed.contains("rxkad"), "{listed}");
    let mut options = CellOptions::at(&ours, "rl");
    options.cell = REALM_CELL.to_owned();
    let _cell = Cell::serve(&venus, scratch.path(), &options);
    let keys = hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt");
    hosts.give_keys("cl1", REALM_CELL, &ours, &keys);

    let run = |line: &str| hosts.tool("cl1", &words(line));
    run("pts createuser alice -localauth");
    run("pts createuser bob -localauth");
    run(&format!("vos create {ours} a home.alice -localauth"));
    for user in ["alice", "bob", "admin"] {
        let _ = hosts.kinit(user);
    }
    assert!(afsx(&hosts, "admin", "-clear", "sa home.alice alice all").is_some());
    for level in LEVELS {
        assert_eq!(rights(&hosts, "alice", level), "7f/0", "{level}");
        assert_eq!(rights(&hosts, "bob", level), "0/0", "{level}");
        // An administrator may always administer.
        assert_eq!(rights(&hosts, "admin", level), "7f/0", "{level}");
    }
    contents_survive_every_level(&hosts);
    assert!(afsx(&hosts, "admin", "", "mkm root.cell alice home.alice").is_some());
    our_mount_is_the_user_of_the_tickets(&hosts, &scratch);
    revoked_tickets_count_no_more(&hosts, &state);
}

/// Of tickets that were obtained before a revocation, whatever the level; those of others count.
fn revoked_tickets_count_no_more(hosts: &Hosts, state: &str) {
    let reads = |user, level| afsx(hosts, user, level, "get home.alice:/letter");
    assert!(reads("alice", "").is_some());
    let _ = command(&hosts.netns("venus"), &["revoke", "alice", "--state", state]);
    for level in LEVELS {
        assert_eq!(reads("alice", level), None, "{level}");
        assert!(reads("admin", level).is_some(), "{level}");
    }
    // A ticket of the second in which the user was revoked does not count.
    let letter = until("a ticket of a later second", seconds(30), || {
        let _ = hosts.kinit("alice");
        reads("alice", "")
    });
    assert_eq!(letter, "only for alice");
}

fn our_mount_is_the_user_of_the_tickets(hosts: &Hosts, scratch: &Scratch) {
    let (client, servers) = (hosts.netns("cl1"), hosts.address(6));
    let mount = Mount::new(&client, REALM_CELL, &servers, scratch.path(), "ours", &[]);
    let home = mount.path().join("alice");
    assert_eq!(fs::read_dir(&home).unwrap_err().kind(), ErrorKind::PermissionDenied);
    let (alice, tokens) = (hosts.kinit("alice"), scratch.folder("tokens"));
    let said = hosts.andrew_with("cl1", &alice, &tokens, &["login", "--kerberos", "--cell", REALM_CELL]);
    assert!(said.contains("alice is logged in"), "{said}");
    fs::write(home.join("letter"), "only for alice").unwrap();
    assert_eq!(afsx(hosts, "alice", "", "get home.alice:/letter").unwrap(), "only for alice");
    assert_eq!(afsx(hosts, "bob", "", "get home.alice:/letter"), None);
    let _ = hosts.andrew_with("cl1", &alice, &tokens, &["logout", "--cell", REALM_CELL]);
}

fn contents_survive_every_level(hosts: &Hosts) {
    for (number, level) in LEVELS.into_iter().enumerate() {
        assert!(afsx(hosts, "alice", level, &format!("create home.alice f{number}")).is_some());
        // More than a window of packets, and not a multiple of the packet size.
        let script = format!(
            "seq 1 200000 | {0} put home.alice:/f{number} && {0} get home.alice:/f{number} | cksum && seq 1 200000 | cksum",
            afsx_line(level)
        );
        let sums = as_user(hosts, "alice", &["sh", "-c", &script]).unwrap();
        let sums: Vec<&str> = sums.lines().collect();
        assert!(matches!(sums.as_slice(), [read, written] if read == written), "{level}: {sums:?}");
        assert!(afsx(hosts, "bob", level, &format!("get home.alice:/f{number}")).is_none(), "{level}");
    }
}

/// The third number of `afsx stat`: the rights of the caller and of all users, in hexadecimal.
fn rights(hosts: &Hosts, user: &str, level: &str) -> String {
    let said = afsx(hosts, user, level, "stat home.alice").unwrap();
    let at = said.find("rights ").unwrap_or_else(|| panic!("{said}"));
    said[at..].split_whitespace().nth(1).unwrap().to_owned()
}

fn afsx(hosts: &Hosts, user: &str, level: &str, line: &str) -> Option<String> {
    as_user(hosts, user, &words(&format!("{} {line}", afsx_line(level))))
}

fn afsx_line(level: &str) -> String {
    format!("afsx -krb5 {} {level}", REALM_CELL.to_uppercase())
}

/// Output of a program that runs with a user's tickets, if it succeeds.
fn as_user(hosts: &Hosts, user: &str, program: &[&str]) -> Option<String> {
    let cache = format!("KRB5CCNAME=FILE:{}", hosts.state().join(format!("{user}.cc")).display());
    let output = hosts.try_tool("cl1", &[&["env", &cache], program].concat());
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// rxkad's levels, as options of `afsx`. The empty option means everything is encrypted.
const LEVELS: [&str; 3] = ["-clear", "-auth", ""];
/// The cell whose name is that of its realm in lower case.
const REALM_CELL: &str = "realm.test";
