//! Drives on hosts of their own, a cell whose bytes lie there, two mounts of ours and OpenAFS's own client: drives are killed,
//! rebuilt and drained while a program is built, one without copies is lost for a while, and stores wait for two.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod builder;
pub mod drive;
mod lan;
mod program;
mod reader;

use std::fs;
use std::io;
use std::path::Path;

use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::wait::until_equal;
use andrew_tests::live::watchdog::Watchdog;

use builder::Builder;
use lan::{Lan, at_drives};
use program::Program;
use reader::Reader;

const NEEDS: &[Need] = &[Need::Root, Need::Fuse, Need::OpenAfs, Need::Compiler];
const MIB: usize = 1 << 20;

#[test]
fn a_program_is_built_while_drives_are_killed_rebuilt_and_drained() {
    if !all_there(NEEDS) {
        return;
    }
    let scratch = Scratch::new("drive-hosts");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("drive_hosts", seconds(900), move || unmount_below(&folder));
    let local = Program::write(&scratch.folder("local"));
    local.build();
    let mut lan = Lan::new(&scratch, 37, &["zero", "one", "two"]);
    lan.use_drives(&["one", "two"]);
    lan.make_volume("built");
    let [first, second] = ["first", "second"].map(|name| lan.mount(name));
    let here = Program::write(&first.path().join("built/program"));
    let there = Program::at(&second.path().join("built/program"));
    lan.wait_for_copies("one", "two");
    let (stored, read) = (at_drives(first.path(), "stored"), at_drives(second.path(), "fetched"));

    // The drive with the copies is killed, and comes back.
    let (builder, reader) = (Builder::start(&here), Reader::start(&there, &local));
    builder.wait_for_round();
    lan.kill("two");
    builder.wait_for_round();
    reader.wait_for_round();
    lan.again("two");
    builder.finish();
    reader.finish();
    assert!(
        at_drives(first.path(), "stored") - stored > 16 * MIB as u64,
        "the build was stored at the drive"
    );
    assert!(at_drives(second.path(), "fetched") - read > 8 * MIB as u64, "the reader read at the drives");
    lan.wait_for_copies("one", "two");
    there.assert_same(&local);
    lan.openafs("cl1", |top| Program::at(&top.join("built/program")).assert_same(&local));

    // The first drive is drained to another one, killed when it is empty, and removed.
    lan.use_drives(&["zero", "two"]);
    let (builder, reader) = (Builder::start(&here), Reader::start(&there, &local));
    let drained = lan.drive(&["drain", "one", "--wait"]);
    assert!(drained.contains("one: drained"), "{drained}");
    lan.kill("one");
    builder.wait_for_round();
    reader.wait_for_round();
    builder.finish();
    reader.finish();
    let removed = lan.drive(&["remove", "one"]);
    assert!(removed.contains("drive one is removed"), "{removed}");
    there.assert_same(&local);
    lan.wait_for_copies("zero", "two");

    // The drive with all data is lost; what is read comes from its copies, to clients that have nothing cached.
    lan.kill("zero");
    let third = lan.mount("third");
    Program::at(&third.path().join("built/program")).assert_same(&local);
    assert!(at_drives(third.path(), "fetched") > 8 * MIB as u64, "the copies were read at their drive");
    lan.openafs("cl2", |top| Program::at(&top.join("built/program")).assert_same(&local));
    lan.again("zero");
    here.build();
    there.assert_same(&local);
}

#[test]
fn without_copies_a_drive_that_is_away_costs_its_files_alone_and_is_named() {
    if !all_there(NEEDS) {
        return;
    }
    let scratch = Scratch::new("drive-hosts-alone");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("drive_hosts_alone", seconds(600), move || unmount_below(&folder));
    let mut lan = Lan::new(&scratch, 38, &["zero", "one"]);
    lan.make_volume("single");
    let writer = lan.mount("writer");
    let top = writer.path().join("single");
    for (drive, name) in [("one", "far"), ("zero", "near")] {
        lan.use_drives(&[drive]);
        fs::write(top.join(name), content(name)).unwrap();
    }
    // The first mount is connected to both drives, and has nothing cached; the other one knows neither.
    let warm = lan.mount("warm");
    check(&warm.path().join("single"), &["far", "near"]);
    lan.command(&["fs", "flush", warm.path().join("single/far").to_str().unwrap()]);
    lan.kill("one");
    let cold = lan.mount("cold");
    for mount in [&warm, &cold] {
        let top = mount.path().join("single");
        assert!(is_eio(fs::read(top.join("far"))), "the only drive that has it is away");
        assert_eq!(fs::metadata(top.join("far")).unwrap().len(), content("far").len() as u64);
        check(&top, &["near"]);
    }
    // The mount that has read there knows the drive; the file server, that it is away.
    let told = lan.command(&["fs", "explain", warm.path().join("single/far").to_str().unwrap()]);
    assert!(told.contains(&format!("drive {}:7010: failed", lan.at("one"))), "{told}");
    let said = lan.server_said();
    let away = format!(
        "a drive is away: its files cannot be read, and nothing stored there drive=one address={}",
        lan.at("one")
    );
    assert!(said.contains(&away), "{said}");
    for mount in [&warm, &cold] {
        assert!(!mount.process.said().contains("the data path failed"), "{}", mount.process.said());
    }
    let listed = lan.drive(&["list"]);
    let line = listed.lines().find(|line| line.starts_with("one ")).unwrap_or_default();
    assert!(line.contains("refused"), "{listed}");
    lan.openafs("cl1", |top| {
        assert!(is_eio(fs::read(top.join("single/far"))));
        check(&top.join("single"), &["near"]);
    });
    lan.again("one");
    for mount in [&warm, &cold] {
        let far = mount.path().join("single/far");
        until_equal("the file of a drive that is back", &true, || {
            fs::read(&far).is_ok_and(|bytes| bytes == content("far"))
        });
    }
    lan.openafs("cl2", |top| check(&top.join("single"), &["far", "near"]));
}

#[test]
fn what_waited_for_two_drives_is_read_after_the_loss_of_either() {
    if !all_there(NEEDS) {
        return;
    }
    let scratch = Scratch::new("drive-hosts-pair");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("drive_hosts_pair", seconds(600), move || unmount_below(&folder));
    let mut lan = Lan::new(&scratch, 39, &["zero", "one", "two"]);
    lan.use_drives(&["one", "two"]);
    lan.make_volume("pair");
    lan.place("pair", 2, 2);
    let writer = lan.mount("writer");
    let top = writer.path().join("pair");
    fs::write(top.join("before"), content("before")).unwrap();
    // At once, before any pass of the rebuild could have made a copy.
    lan.kill("one");
    check(&lan.mount("second").path().join("pair"), &["before"]);
    fs::write(top.join("during"), content("during")).unwrap();
    // It gets what it missed without an order.
    lan.again("one");
    lan.wait_for_copies("one", "two");
    lan.kill("two");
    check(&lan.mount("third").path().join("pair"), &["before", "during"]);
    lan.openafs("cl1", |top| check(&top.join("pair"), &["before", "during"]));
    lan.again("two");
}

fn content(name: &str) -> Vec<u8> {
    (0..5 * MIB + 17).map(|at| ((at * 31 + name.len() * 7 + at / 251) % 253) as u8).collect()
}

fn check(top: &Path, names: &[&str]) {
    for name in names {
        assert!(fs::read(top.join(name)).unwrap() == content(name), "{name}");
    }
}

fn is_eio<T>(result: io::Result<T>) -> bool {
    result.err().and_then(|error| error.raw_os_error()) == Some(libc::EIO)
}
