//! Dumps from OpenAFS's servers restored on Andrew's and back, full, incremental and merged, by OpenAFS's `vos` and by
//! Andrew's. Damaged and truncated ones are refused, and leave nothing behind.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use andrew_tests::live::manifest::{Manifest, assert_same, manifest};
use andrew_tests::live::mixed::Mixed;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::tree::change;
use andrew_tests::live::wait::until;

const NUMBER: u8 = 22;

#[test]
fn dumps_of_either_kind_of_server_are_restored_by_the_other() {
    if !all_there(&[Need::Root, Need::Fuse, Need::OpenAfs]) {
        return;
    }
    let mixed = Mixed::new("openafs-dumps", NUMBER);
    let dumped =
        [("there", "SRV1 a"), ("here", "OURS a")].map(|(volume, place)| Dumped::of(&mixed, volume, place));
    let [there, here] = &dumped;
    for (dump, place) in [(there, "OURS b"), (here, "SRV2 a")] {
        restored_by_openafs_tool(&mixed, dump, place);
        restored_by_our_tool(&mixed, dump, place);
        merged(&mixed, dump, place);
    }
    damaged_is_refused(&mixed, there);
}

/// Dumps of a volume, and its contents when they were made.
struct Dumped {
    volume: &'static str,
    full: PathBuf,
    part: PathBuf,
    first: Manifest,
    second: Manifest,
}

impl Dumped {
    fn of(mixed: &Mixed, volume: &'static str, place: &str) -> Self {
        let (point, first) = mixed.volume_with_tree(volume, place, 20);
        let [full, part] = ["full", "part"].map(|word| mixed.folder().join(format!("{volume}.{word}")));
        mixed.vos(&format!("dump {volume} -file {}", full.display()));
        let since = next_second();
        change(&point, 0);
        mixed.andrew_vos(&format!("dump {volume} --time {since} --omitdirs --file {}", part.display()));
        let lengths = [&full, &part].map(|file| fs::metadata(file).unwrap().len());
        assert!(lengths[0] > 2 * lengths[1], "{lengths:?}");
        Self { volume, full, part, first, second: manifest(&point) }
    }
}

fn restored_by_openafs_tool(mixed: &Mixed, dump: &Dumped, place: &str) {
    let name = format!("{}.theirs", dump.volume);
    mixed.vos(&format!("restore {place} {name} -file {}", dump.full.display()));
    let point = mixed.mounted(&name);
    assert_same(&name, &dump.first, &manifest(&point));
    mixed.vos(&format!("restore {place} {name} -file {} -overwrite incremental", dump.part.display()));
    assert_same(&name, &dump.second, &manifest(&point));
    change(&point, 1);
    mixed.vos(&format!("restore {place} {name} -file {} -overwrite full", dump.full.display()));
    assert_same(&name, &dump.first, &manifest(&point));
}

fn restored_by_our_tool(mixed: &Mixed, dump: &Dumped, place: &str) {
    let name = format!("{}.ours", dump.volume);
    mixed.andrew_vos(&format!("restore {place} {name} --file {}", dump.full.display()));
    let point = mixed.mounted(&name);
    assert_same(&name, &dump.first, &manifest(&point));
    mixed.andrew_vos(&format!(
        "restore {place} {name} --file {} --overwrite incremental",
        dump.part.display()
    ));
    assert_same(&name, &dump.second, &manifest(&point));
}

/// The incremental dump appended to the full one, in one stream.
fn merged(mixed: &Mixed, dump: &Dumped, place: &str) {
    let (full, part) = (fs::read(&dump.full).unwrap(), fs::read(&dump.part).unwrap());
    let volume = part.windows(2).position(|bytes| bytes == b"\x02i").unwrap();
    let file = mixed.folder().join("merged");
    fs::write(&file, [&full[..full.len() - 5], &part[volume..]].concat()).unwrap();
    let name = format!("{}.merged", dump.volume);
    mixed.vos(&format!("restore {place} {name} -file {}", file.display()));
    assert_same(&name, &dump.second, &manifest(&mixed.mounted(&name)));
}

fn damaged_is_refused(mixed: &Mixed, dump: &Dumped) {
    let whole = fs::read(&dump.full).unwrap();
    let name_at = whole.windows(12).position(|bytes| bytes == b"file number ").unwrap();
    let mut other_name = whole.clone();
    other_name[name_at] ^= 1;
    let cut = [whole.len() / 3, whole.len() - 5, 40].map(|len| whole[..len].to_vec());
    let [third, end, head] = cut;
    let more = [whole.as_slice(), b"\n"].concat();
    let there = state(mixed);
    for (what, bytes) in [
        ("cut", third),
        ("without its end", end),
        ("hardly begun", head),
        ("too long", more),
        ("damaged", other_name),
    ] {
        let file = mixed.folder().join("bad");
        fs::write(&file, bytes).unwrap();
        // In a pipe vos cannot read the end first.
        let line = mixed.line(&format!("vos restore OURS b bad -localauth < {}", file.display()));
        let output = mixed.hosts().try_tool("cl1", &["sh", "-c", &line]);
        let said =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(!output.status.success(), "{what}: {said}");
        assert_eq!(state(mixed), there, "{what}");
        let number = said.split("Id ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        // A regular file: OpenAFS's vos unlinks an output that it could not complete, devices too.
        let none = mixed.folder().join("none");
        let line = format!("vos dump {number} -server OURS -partition b -file {} -localauth", none.display());
        let line = mixed.line(&line);
        let left = mixed.hosts().try_tool("cl1", &line.split(' ').collect::<Vec<_>>());
        assert!(!left.status.success(), "{what}: volume {number} is still there");
    }
}

/// The entries of the server and of the location database.
fn state(mixed: &Mixed) -> [String; 2] {
    let volumes = mixed.vos("listvol OURS -fast");
    [volumes, mixed.vos("listvldb -quiet")]
}

/// By how much the clock may be late by which OpenAFS's server dates changes: a thread of its own sets it every second.
const LATE: u64 = 2;

/// Waits until further changes have a later second than all earlier ones; returns that time in Unix seconds.
fn next_second() -> u64 {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let next = now() + 1;
    until("the next second", seconds(30), || (now() >= next + LATE).then_some(next))
}
