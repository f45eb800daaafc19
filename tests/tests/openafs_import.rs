//! Migration of a real OpenAFS cell: its database files are imported into an Andrew database server, OpenAFS's own
//! tools read the same there as before, its file servers continue with the new databases, and its volumes are moved to
//! an Andrew server with all their contents.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use andrew_tests::live::cell::andrew;
use andrew_tests::live::etcd::{Etcd, wait_until_healthy};
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::peers::Hosts;
use andrew_tests::live::process::{Daemon, run, run_any, seconds};
use andrew_tests::live::scratch::Scratch;
use andrew_tests::live::wait::until;
use andrew_tests::live::watchdog::Watchdog;
use serde_json::Value;

const CELL: &str = "old.test";
const NUMBER: u8 = 32;
/// Hosts for Andrew servers: one for the databases, one for volumes.
const DATABASES: (&str, u8) = ("venus", 6);
const FILES: (&str, u8) = ("files", 7);
/// A host whose databases are in etcd.
const SHARED: (&str, u8) = ("vice", 5);

#[test]
fn an_openafs_cell_moves_to_servers_of_ours() {
    if !all_there(&[Need::Root, Need::OpenAfs, Need::Etcd]) {
        return;
    }
    let scratch = Scratch::new("openafs-import");
    let _watchdog = Watchdog::new("openafs_import", seconds(600), || ());
    let hosts = Hosts::with_servers(scratch.path(), NUMBER, CELL);
    hosts.host(FILES.0, FILES.1);
    fill(&hosts);
    let old = DatabaseContents::of(&hosts, "srv1");
    let files = take_files(&hosts, &scratch.folder("taken"));

    let databases = AndrewHost::new(&hosts, DATABASES, &scratch.folder("databases"));
    let served = databases.serve_databases("");
    a_damaged_file_is_refused(&databases, &files, &scratch.folder("damaged"));
    let before = databases.andrew(&["pts", "listentries", "-users", "-groups"]);
    let dry = databases.import(&files, &["--dry-run"]);
    assert!(dry.contains("nothing was written"), "{dry}");
    assert_eq!(databases.andrew(&["pts", "listentries", "-users", "-groups"]), before);
    let done: Value = serde_json::from_str(&databases.import(&files, &["--json"])).unwrap();
    assert_eq!(
        (&done["locations"]["added"], &done["locations"]["servers"]),
        (&5.into(), &2.into()),
        "{done}"
    );
    assert_eq!((&done["people"]["users"], &done["people"]["groups"]), (&6.into(), &8.into()), "{done}");
    // The administrator of both cells is in his group already.
    assert_eq!(done["people"]["memberships"], 5, "{done}");
    let again = databases.try_import(&files, &[]);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(!again.status.success() && said.contains("already"), "{said}");
    assert!(databases.import(&files, &["--merge"]).contains("were here already"));

    for host in [DATABASES.0, "srv1", "srv2", "cl1"] {
        hosts.give_keys(host, CELL, &databases.address, &databases.keys());
    }
    let new = DatabaseContents::of(&hosts, DATABASES.0);
    assert_eq!(new, old);

    into_etcd(&hosts, &files, &old, &scratch.folder("shared"));
    for server in ["srv1", "srv2"] {
        hosts.tool(server, &["bos", "restart", server, "-instance", "dafs", "-localauth"]);
        until("a file server of OpenAFS's", seconds(120), || {
            let asked = hosts.try_tool("srv1", &["vos", "partinfo", server, "-localauth"]);
            asked.status.success().then_some(())
        });
    }
    let files_server = AndrewHost::new(&hosts, FILES, &scratch.folder("files"));
    let served_files = files_server.join(&databases);
    volumes_come_over(&hosts, &databases, &files_server);
    drop((served_files, served));
}

/// The same files give the same cell where its databases are in etcd.
fn into_etcd(hosts: &Hosts, files: &[PathBuf; 2], old: &DatabaseContents, home: &Path) {
    hosts.host(SHARED.0, SHARED.1);
    let shared = AndrewHost::new(hosts, SHARED, home);
    let _etcd = Etcd::alone(&shared.netns, home);
    wait_until_healthy(&shared.netns, &["--endpoints", "http://127.0.0.1:2379"]);
    let _served =
        shared.serve_databases("\n[database]\nkind = \"etcd\"\nendpoints = [\"http://127.0.0.1:2379\"]\n");
    shared.import(files, &[]);
    hosts.give_keys(SHARED.0, CELL, &shared.address, &shared.keys());
    assert_eq!(DatabaseContents::of(hosts, SHARED.0), *old);
}

/// Users, groups in groups, groups of groups, and volumes with copies and a backup.
fn fill(hosts: &Hosts) {
    let pts = |words: &[&str]| hosts.tool("srv1", &[&["pts"], words, &["-localauth"]].concat());
    for user in ["carol", "dave"] {
        pts(&["createuser", user]);
    }
    pts(&["createuser", "high", "-id", "70000"]);
    pts(&["creategroup", "staff", "-owner", "system:administrators"]);
    pts(&["creategroup", "alice:friends", "-owner", "alice"]);
    pts(&["creategroup", "staff:projects", "-owner", "staff"]);
    for (user, group) in [
        ("alice", "staff"),
        ("bob", "staff"),
        ("bob", "alice:friends"),
        ("carol", "staff:projects"),
        ("high", "staff"),
    ] {
        pts(&["adduser", user, group]);
    }
    pts(&["setfields", "alice", "-groupquota", "7"]);
    pts(&["setfields", "staff", "-access", "SOMar"]);
    pts(&["setmax", "-user", "80000"]);
    pts(&["delete", "dave"]);
    let vos = |words: &[&str]| hosts.tool("srv1", &[&["vos"], words, &["-localauth"]].concat());
    vos(&["create", "srv2", "a", "projects"]);
    vos(&["addsite", "srv1", "a", "projects"]);
    vos(&["release", "projects"]);
    vos(&["backup", "home.alice"]);
    vos(&["create", "srv1", "b", "gone"]);
    vos(&["remove", "-id", "gone"]);
    afsx(hosts, &["sa", "projects", "staff", "all", "alice:friends", "rl", "system:anyuser", "none"]);
    for (volume, name, text) in [("home.alice", "letter", "dear bob"), ("projects", "plan", "go on")] {
        afsx(hosts, &["create", volume, name]);
        let put = format!("printf '{text}' | afsx -krb5 {} put {volume}:/{name}", CELL.to_uppercase());
        hosts.tool("srv1", &["sh", "-c", &put]);
    }
}

/// OpenAFS's file tool as the cell's Kerberos administrator.
fn afsx(hosts: &Hosts, words: &[&str]) -> String {
    hosts.tool("srv1", &[&["afsx", "-krb5", &CELL.to_uppercase()], words].concat())
}

/// Output of OpenAFS's tools on the databases.
#[derive(PartialEq, Eq, Debug)]
struct DatabaseContents {
    people: String,
    volumes: String,
    addresses: String,
}

impl DatabaseContents {
    fn of(hosts: &Hosts, host: &str) -> Self {
        let ask = |words: &[&str]| hosts.tool(host, &[words, &["-localauth"]].concat());
        // OpenAFS lists in the order of its file, Andrew by number.
        let sorted = |text: String| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.join("\n")
        };
        let mut people =
            sorted(ask(&["pts", "listentries", "-users", "-groups"])) + &ask(&["pts", "listmax"]);
        for name in [
            "alice",
            "bob",
            "carol",
            "high",
            "staff",
            "alice:friends",
            "staff:projects",
            "system:administrators",
        ] {
            people += &ask(&["pts", "examine", name]);
            people += &ask(&["pts", "membership", name]);
            people += &ask(&["pts", "listowned", name]);
        }
        let addresses = sorted(ask(&["vos", "listaddrs", "-printuuid"]));
        Self { people, volumes: ask(&["vos", "listvldb"]), addresses }
    }
}

/// Stops the database servers, and copies their files.
fn take_files(hosts: &Hosts, to: &Path) -> [PathBuf; 2] {
    for instance in ["vlserver", "ptserver"] {
        hosts.tool("srv1", &["bos", "stop", "srv1", "-instance", instance, "-wait", "-localauth"]);
    }
    let from = hosts.state().join("hosts/srv1/var-openafs/db");
    ["prdb.DB0", "vldb.DB0"].map(|name| {
        fs::copy(from.join(name), to.join(name)).unwrap();
        to.join(name)
    })
}

/// A file one byte short, and one with an entry that points nowhere.
fn a_damaged_file_is_refused(databases: &AndrewHost, [prdb, vldb]: &[PathBuf; 2], folder: &Path) {
    let mut bytes = fs::read(prdb).unwrap();
    // The first continuation or entry gets an invalid kind.
    let first = 64 + 65_600;
    bytes[first + 3] = 0x3c;
    let [bad, good] = [folder.join("prdb.DB0"), folder.join("vldb.DB0")];
    fs::write(&bad, bytes).unwrap();
    fs::copy(vldb, &good).unwrap();
    let refused = databases.try_import(&[bad, good], &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "a damaged file was taken");
    assert!(said.contains("damaged") && said.contains(&format!("offset {first}")), "{said}");
    assert!(databases.andrew(&["vos", "listvldb"]).contains("Total entries: 0"), "half of it was taken");
}

/// Moves one volume by OpenAFS's tool and one by Andrew's, with all their contents.
fn volumes_come_over(hosts: &Hosts, databases: &AndrewHost, to: &AndrewHost) {
    let contents = || {
        ["home.alice", "projects"].map(|volume| {
            let file = if volume == "projects" { "plan" } else { "letter" };
            afsx(hosts, &["la", volume]) + &afsx(hosts, &["get", &format!("{volume}:/{file}")])
        })
    };
    let before = contents();
    assert!(before[0].contains("dear bob") && before[1].contains("staff"), "{before:?}");
    let vos = ["vos", "move", "home.alice", "srv2", "a", &to.address, "a", "-localauth"];
    hosts.tool("srv1", &vos);
    databases.andrew(&["vos", "move", "projects", &to.address, "a"]);
    databases.andrew(&["vos", "release", "projects"]);
    for volume in ["home.alice", "projects"] {
        let entry = databases.andrew(&["vos", "examine", volume]);
        assert!(entry.contains(&format!("{} partition /vicepa RW Site", to.address)), "{entry}");
    }
    assert_eq!(contents(), before);
}

/// A host with Andrew servers.
struct AndrewHost {
    netns: andrew_tests::live::netns::Netns,
    address: String,
    home: PathBuf,
    key_file: PathBuf,
}

impl AndrewHost {
    fn new(hosts: &Hosts, (name, number): (&str, u8), home: &Path) -> Self {
        let key_file = hosts.state().join("hosts/srv1/etc-openafs/server/KeyFileExt");
        Self { netns: hosts.netns(name), address: hosts.address(number), home: home.to_owned(), key_file }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.netns.command(andrew());
        command.env("HOME", &self.home).env("XDG_RUNTIME_DIR", self.home.join("run"));
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").args(words);
        command
    }

    fn andrew(&self, words: &[&str]) -> String {
        run(self.command(words), seconds(60))
    }

    fn state(&self) -> PathBuf {
        self.home.join(".local/state/andrew")
    }

    fn keys(&self) -> PathBuf {
        self.home.join("KeyFileExt")
    }

    fn serve(&self, words: &[&str]) -> Daemon {
        let mut process = Daemon::start(self.command(&[&["serve"], words].concat()), &self.home.join("log"));
        wait_for_word(&mut process, "its state is in");
        process
    }

    /// A database server with the old cell's keys, as docs/servers.md describes.
    fn serve_databases(&self, more: &str) -> Daemon {
        fs::copy(&self.key_file, self.keys()).unwrap();
        fs::set_permissions(self.keys(), fs::Permissions::from_mode(0o600)).unwrap();
        let text = format!(
            "cell = \"{CELL}\"\nlisten = \"{}\"\nroles = [\"database\"]\nkey_file = \"{}\"\n{more}",
            self.address,
            self.keys().display()
        );
        fs::create_dir_all(self.state()).unwrap();
        fs::write(self.state().join("server.toml"), text).unwrap();
        self.serve(&["--config", self.state().join("server.toml").to_str().unwrap()])
    }

    fn try_import(&self, [prdb, vldb]: &[PathBuf; 2], more: &[&str]) -> std::process::Output {
        let files = ["import", "--prdb", prdb.to_str().unwrap(), "--vldb", vldb.to_str().unwrap()];
        run_any(self.command(&[&files[..], more].concat()), seconds(60))
    }

    fn import(&self, files: &[PathBuf; 2], more: &[&str]) -> String {
        let done = self.try_import(files, more);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Becomes a file server of the cell.
    fn join(&self, databases: &AndrewHost) -> Daemon {
        let join = databases.home.join("join.toml");
        let out = join.to_str().unwrap();
        databases.andrew(&["server", "add", "--listen", &self.address, "--roles", "files", "--out", out]);
        let process = self.serve(&["--join", out]);
        until("the new server in the location database", seconds(60), || {
            databases.andrew(&["server", "list"]).contains(&format!("{}: up", self.address)).then_some(())
        });
        process
    }
}
