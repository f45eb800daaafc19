//! Partitions that are missing, another's, damaged or failing beside one that is well: the others serve, everybody is told, and nothing is
//! taken for lost.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use andrew_tests::live::cell::{CELL, andrew, try_command};
use andrew_tests::live::mount::wait_for_word;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::{Daemon, run_any, seconds};
use andrew_tests::live::setup::Setup;
use serde_json::Value;

/// A server with the partitions a and b, and its configuration.
struct TwoDisks {
    setup: Setup,
    folder: PathBuf,
    starts: u32,
}

impl TwoDisks {
    fn new(name: &'static str, number: u8) -> Self {
        let setup = Setup::new(name, number, seconds(240));
        let folder = setup.scratch().folder("host");
        let text = format!(
            "cell = \"{CELL}\"\nlisten = \"{}\"\nstate = \"state\"\nanyuser = \"rlidwk\"\n[[partition]]\nname = \"a\"\npath = \"a\"\n[[partition]]\nname = \"b\"\npath = \"b\"\n",
            setup.address()
        );
        fs::write(folder.join("server.toml"), text).unwrap();
        Self { setup, folder, starts: 0 }
    }

    fn state(&self) -> String {
        self.folder.join("state").display().to_string()
    }

    fn disk(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn serve(&mut self) -> Daemon {
        self.starts += 1;
        let mut command = self.setup.netns().command(andrew());
        // By its name alone: an administrator stands in the directory.
        command.current_dir(&self.folder).args(["serve", "--config", "server.toml"]);
        let mut process = Daemon::start(command, &self.folder.join(format!("log{}", self.starts)));
        wait_for_word(&mut process, "its state is in");
        process
    }

    fn fails_to_serve(&self) -> String {
        let mut command = self.setup.netns().command(andrew());
        command.args(["serve", "--config"]).arg(self.folder.join("server.toml"));
        let output = run_any(command, seconds(60));
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn try_andrew(&self, words: &str) -> Output {
        let state = self.state();
        let mut all: Vec<&str> = words.split(' ').collect();
        all.extend(["--state", &state]);
        try_command(self.setup.netns(), &all)
    }

    fn andrew(&self, words: &str) -> String {
        let output = self.try_andrew(words);
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn create(&self, partition: &str, name: &str) {
        self.andrew(&format!("vos create {} {partition} {name}", self.setup.address()));
    }

    fn json(&self, words: &str) -> Value {
        serde_json::from_slice(&self.try_andrew(&format!("{words} --json")).stdout).unwrap()
    }

    /// The state of the partition b, as each command tells it.
    fn is_told(&self, state: &str) -> String {
        let checked = self.try_andrew("vos check --json");
        assert_eq!(checked.status.code(), Some(1), "{checked:?}");
        let checked: Value = serde_json::from_slice(&checked.stdout).unwrap();
        assert_eq!(checked["partitions"][0]["partition"], "/vicepb", "{checked}");
        assert_eq!(checked["partitions"][0]["state"], state, "{checked}");
        assert_eq!(checked["findings"].as_array().unwrap().len(), 0, "no volume is lost: {checked}");
        let listed = self.json("server list");
        assert_eq!(listed[0]["partitions"][0]["state"], "online", "{listed}");
        assert_eq!(listed[0]["partitions"][1]["state"], state, "{listed}");
        let examined = self.andrew("vos examine onb");
        assert!(examined.contains(&format!("/vicepb is {state}")), "{examined}");
        let told = self.json("status");
        assert_eq!(told["partitions"][1]["state"], state, "{told}");
        told["partitions"][1]["why"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join(format!("log{}", self.starts))).unwrap()
    }
}

fn end(mut process: Daemon) {
    assert!(process.end(seconds(60)).is_some_and(|status| status.success()), "{}", process.said());
}

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_partition_that_is_missing_another_s_or_damaged_is_off_line_and_the_others_serve() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let mut host = TwoDisks::new("ill_partitions", 13);
    let server = host.serve();
    host.create("b", "onb");
    let entries = host.json("vos listvldb");
    end(server);
    let (disk, away) = (host.disk("b"), host.disk("away"));

    // Not mounted, as a bare mount point or without one.
    fs::rename(&disk, &away).unwrap();
    for is_there in [true, false] {
        if is_there {
            fs::create_dir(&disk).unwrap();
        }
        let server = host.serve();
        let why = host.is_told("offline");
        assert!(why.contains("andrew store forget /vicepb"), "{why}");
        assert!(host.log().contains("partition /vicepb is off line"), "{}", host.log());
        let repaired = host.try_andrew("vos check --repair");
        assert_eq!(repaired.status.code(), Some(1));
        assert_eq!(host.json("vos listvldb"), entries, "nothing is lost");
        host.create("a", "ona");
        host.andrew("vos remove ona");
        end(server);
        if is_there {
            assert_eq!(names(&disk), Vec::<String>::new(), "the bare mount point is not filled");
            fs::remove_dir(&disk).unwrap();
        }
        assert!(!disk.exists());
    }

    // Another's disk, whole in itself.
    let other = host.disk("other");
    fs::create_dir(&other).unwrap();
    fs::write(
        other.join("partition.json"),
        "{\"format\": 1, \"id\": \"07070707-0707-0707-0707-070707070707\"}",
    )
    .unwrap();
    fs::rename(&other, &disk).unwrap();
    let server = host.serve();
    let why = host.is_told("offline");
    assert!(why.contains("07070707"), "{why}");
    end(server);
    assert_eq!(names(&disk), ["partition.json"]);
    fs::remove_dir_all(&disk).unwrap();

    // Damaged.
    fs::rename(&away, &disk).unwrap();
    let index = fs::read(disk.join("index/index")).unwrap();
    fs::write(disk.join("index/index"), vec![7; 8192]).unwrap();
    let server = host.serve();
    let why = host.is_told("offline");
    assert!(why.contains("andrew store repair"), "{why}");
    end(server);

    // And well again.
    fs::write(disk.join("index/index"), index).unwrap();
    let server = host.serve();
    host.andrew("vos check");
    assert_eq!(host.json("status")["partitions"][1]["state"], "online");
    end(server);

    // A new one in its place, by order.
    fs::remove_dir_all(&disk).unwrap();
    host.andrew("store forget /vicepb");
    let server = host.serve();
    let checked = host.try_andrew("vos check --repair");
    assert_eq!(checked.status.code(), Some(1), "a read-write volume that is nowhere is left to decide");
    assert_eq!(host.json("vos listvldb"), entries);
    host.andrew("vos check --repair --lost onb");
    host.andrew("vos check");
    assert!(!host.andrew("vos listvldb").contains("onb"));
    end(server);
}

#[test]
fn a_server_none_of_whose_partitions_opens_serves_the_rest_and_tells_why() {
    if !all_there(&[Need::Root]) {
        return;
    }
    let mut host = TwoDisks::new("no_partitions", 15);
    let disks = ["a", "b"].map(|name| (host.disk(name), host.disk(&format!("{name}-away"))));
    disks.iter().for_each(|(disk, _)| fs::write(disk, "no directory").unwrap());
    let said = host.fails_to_serve();
    assert!(said.contains("cannot open"), "a new cell has to have a partition: {said}");
    disks.iter().for_each(|(disk, _)| fs::remove_file(disk).unwrap());
    let server = host.serve();
    host.create("b", "onb");
    let entries = host.json("vos listvldb");
    end(server);
    disks.iter().for_each(|(disk, away)| fs::rename(disk, away).unwrap());

    let server = host.serve();
    for place in ["/vicepa", "/vicepb"] {
        assert!(server.said().contains(&format!("partition {place} is off line: ")), "{}", server.said());
    }
    let told = host.json("status");
    let states = [0, 1].map(|n| told["partitions"][n]["state"].as_str().unwrap());
    assert_eq!(states, ["offline", "offline"], "{told}");
    assert!(host.andrew("vos examine onb").contains("/vicepb is offline"));
    let refused = host.try_andrew(&format!("vos create {} a more", host.setup.address()));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && said.contains("/vicepa is off line"), "{refused:?}");
    assert_eq!(host.json("vos listvldb"), entries);
    end(server);

    disks.iter().for_each(|(disk, away)| fs::rename(away, disk).unwrap());
    let server = host.serve();
    host.andrew("vos check");
    end(server);
}

#[test]
fn a_server_whose_secret_is_gone_says_so_and_makes_none() {
    let mut host = TwoDisks::new("gone_secrets", 14);
    end(host.serve());
    for name in ["keys/login", "keys/KeyFileExt", "cell.json", "db/index"] {
        let (path, kept) = (Path::new(&host.state()).join(name), host.disk("kept"));
        fs::rename(&path, &kept).unwrap();
        let said = host.fails_to_serve();
        assert!(said.contains(name) && said.contains(&format!("andrew store forget {name}")), "{said}");
        assert!(!path.exists(), "{name}");
        fs::rename(&kept, &path).unwrap();
    }
    let login = Path::new(&host.state()).join("keys/login");
    let before = fs::read(&login).unwrap();
    end(host.serve());
    assert_eq!(fs::read(&login).unwrap(), before);
    fs::remove_file(&login).unwrap();
    host.andrew("store forget keys/login");
    end(host.serve());
    assert_ne!(fs::read(&login).unwrap(), before);
}
