//! A volume with two read-only sites, one on an OpenAFS server and one on an Andrew server, read by OpenAFS's client
//! and by Andrew's: each reads on without an error when the server it reads from is lost (Andrew's for both clients,
//! then OpenAFS's for Andrew's client), when it returns, and during a release.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Instant;

use andrew_tests::live::files::{BLOCK, Pattern};
use andrew_tests::live::manifest::fs_do;
use andrew_tests::live::mixed::Mixed;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::netns::PATH;
use andrew_tests::live::process::{run, seconds};
use andrew_tests::live::wait::{until, until_equal};

const NUMBER: u8 = 23;
const HOSTS: [&str; 2] = ["vice", "srv2"];
/// Blocks that are read in each state of the servers, so far behind those before that no client has them cached.
const BLOCKS: usize = 32;
const SPACING: u64 = 160;

#[test]
fn both_clients_read_on_whichever_kind_of_server_is_lost() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let mut mixed = Mixed::new("openafs-replicas", NUMBER);
    mixed.vos("create SRV1 a v -maxquota 0");
    let point = mixed.mounted("v");
    Pattern(2).write(&point.join("large"), 6 * SPACING).unwrap();
    fs::write(point.join("word"), "first").unwrap();
    fs_do("setacl", &[point.as_os_str(), OsStr::new("system:anyuser"), OsStr::new("rl")]);
    // Both begin at the only site so far, which is on the Andrew server.
    mixed.vos("addsite OURS a v");
    mixed.vos("release v");
    let ours = mixed.mounted("v.readonly");
    let readers = [("our client", ours), ("OpenAFS's", mixed.seen_by_theirs("v.readonly"))].map(Reader::new);
    let [ours, theirs] = &readers;
    for reader in &readers {
        assert_eq!(reader.read(&mixed, 0, "there is one site"), "vice");
    }
    // A client looks at the volume's sites again when it has heard of the release, which it may after `vos release` ends.
    fs::write(point.join("word"), "second").unwrap();
    mixed.vos("addsite SRV2 a v");
    mixed.vos("release v");
    for reader in &readers {
        reader.shows("second");
    }
    mixed.vice.kill();
    for reader in &readers {
        assert_eq!(reader.read(&mixed, 1, "our server is killed"), "srv2");
    }
    mixed.vice.restart();
    for reader in &readers {
        let _ = reader.read(&mixed, 2, "it is back");
    }
    // OpenAFS's client takes more than a minute to give up a server that is silent; the test does not wait for it.
    link(&mixed, "srv2", "down");
    assert_eq!(ours.read(&mixed, 3, "OpenAFS's server is cut off"), "vice");
    link(&mixed, "srv2", "up");
    until("OpenAFS's server", seconds(120), || {
        let said = mixed.hosts().try_tool("cl1", &["vos", "status", "srv2", "-noauth"]);
        said.status.success().then_some(())
    });

    fs::write(point.join("word"), "third").unwrap();
    thread::scope(|scope| {
        let release = scope.spawn(|| mixed.vos("release v"));
        for reader in &readers {
            let _ = reader.read(&mixed, 4, "a release goes on");
        }
        assert!(release.join().unwrap().contains("successfully"));
    });
    for reader in &readers {
        reader.shows("third");
    }
    let _ = (ours.read(&mixed, 5, "it is released"), theirs.read(&mixed, 5, "it is released"));
}

/// A client that has a file of the replica open throughout.
struct Reader {
    name: &'static str,
    folder: PathBuf,
    file: File,
}

impl Reader {
    fn new((name, folder): (&'static str, PathBuf)) -> Self {
        shows(name, &folder, "first");
        let file = File::open(folder.join("large")).unwrap();
        Self { name, folder, file }
    }

    /// Waits until the client shows what was released with this word.
    fn shows(&self, word: &str) {
        shows(self.name, &self.folder, word);
    }

    /// Reads blocks not read before, and returns which host has sent them.
    fn read(&self, mixed: &Mixed, step: u64, when: &str) -> &'static str {
        let (before, began) = (HOSTS.map(|host| sent(mixed, host)), Instant::now());
        let mut block = vec![0; BLOCK];
        for number in (step * SPACING..).take(BLOCKS) {
            let read = self.file.read_exact_at(&mut block, number * BLOCK as u64);
            read.unwrap_or_else(|error| panic!("{}: block {number}: {error}", self.name));
            assert!(block == Pattern(2).block(number), "{}: block {number} is another", self.name);
        }
        let most = (0..2).max_by_key(|host| sent(mixed, HOSTS[*host]) - before[*host]).unwrap();
        eprintln!("{when}: {} has read after {:.1?}, from {}", self.name, began.elapsed(), HOSTS[most]);
        HOSTS[most]
    }
}

fn shows(name: &str, folder: &Path, word: &str) {
    until_equal(name, &Ok(word.to_owned()), || {
        fs::read_to_string(folder.join("word")).map_err(|error| error.to_string())
    });
}

/// Bytes that a host has sent.
fn sent(mixed: &Mixed, host: &str) -> u64 {
    let mut command = mixed.hosts().netns(host).command("cat");
    command.arg("/proc/net/dev");
    let said = run(command, seconds(10));
    let line = said.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().nth(8).unwrap().parse().unwrap()
}

fn link(mixed: &Mixed, host: &str, state: &str) {
    let mut command: Command = mixed.hosts().netns(host).command("ip");
    command.env("PATH", PATH).args(["link", "set", "eth0", state]);
    run(command, seconds(10));
}
