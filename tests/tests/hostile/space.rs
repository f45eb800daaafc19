//! No free space: on the server's disk, and in the volume.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use andrew_tests::hostile::acknowledged::{Acknowledged, Version};
use andrew_tests::hostile::small_disk::SmallDisk;
use andrew_tests::live::cell::{CELL, command};
use andrew_tests::live::closing::write_and_close;
use andrew_tests::live::manifest::fs_do;
use andrew_tests::live::mount::Mount;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::setup::Setup;
use andrew_tests::live::wait::until;

use crate::hostile::assert_calm;

#[test]
fn a_full_disk_is_told_of_and_loses_nothing() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("full_disk", 7, seconds(240));
    let disk = SmallDisk::new(setup.scratch().folder("disk"), 24);
    let mut cell = setup.serve_in(disk.path(), "rlidwk");
    let user = setup.mount("user", &[]);
    let folder = user.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let mut expected = Acknowledged::default();

    // Until it is full.
    let refused = (0..200).find_map(|number| written(&mut expected, &folder, number, 400_000).err());
    let refused = refused.unwrap_or_else(|| panic!("a disk of 24 MiB took 80 MB"));
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{refused}");
    assert!(expected.present().len() > 10, "only {:?} fitted", expected.present());
    expected.verify(&setup.mount("first", &[]).path().join("folder"));
    assert_calm(&mut cell);

    // Files can be removed then, which frees their space.
    for name in expected.present().iter().take(8) {
        expected.attempt(name, None);
        std::fs::remove_file(folder.join(name)).unwrap();
        expected.acknowledge(name);
    }
    goes_on(&mut expected, &folder, 1000);
    expected.verify(&setup.mount("second", &[]).path().join("folder"));

    // Another file takes the remaining space.
    let ballast = disk.fill();
    let refused = (2000..4000).find_map(|number| written(&mut expected, &folder, number, 3_000).err());
    let refused = refused.unwrap_or_else(|| panic!("a full disk took 6 MB"));
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{refused}");
    drop(ballast);
    goes_on(&mut expected, &folder, 5000);
    assert_calm(&mut cell);

    cell.kill();
    let cell = setup.serve_in(disk.path(), "rlidwk");
    let last = setup.mount("last", &[]);
    expected.verify(&last.path().join("folder"));
    drop((user, last));
    cell.stop();
}

/// Far more removals than the log of an index has room for on a disk that was never full.
#[test]
fn a_full_disk_lets_files_be_removed_by_the_thousand() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("full_removals", 18, seconds(240));
    let disk = SmallDisk::new(setup.scratch().folder("disk"), 64);
    let mut cell = setup.serve_in(disk.path(), "rlidwk");
    let user = setup.mount("user", &[]);
    let folder = user.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let mut expected = Acknowledged::default();
    (0..100).for_each(|number| written(&mut expected, &folder, number, 9_000).unwrap());
    let ballast = disk.fill();
    let refused = (100..6000).find_map(|number| written(&mut expected, &folder, number, 9_000).err());
    let refused = refused.unwrap_or_else(|| panic!("a full disk took 50 MB"));
    assert_eq!(refused.raw_os_error(), Some(libc::ENOSPC), "{refused}");

    // The last one may be there, without its bytes.
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    for name in &names {
        std::fs::remove_file(name).unwrap_or_else(|error| panic!("{}: {error}", name.display()));
    }
    // As many changes as a log of 16 MiB has.
    let directory = folder.join("emptied");
    for round in 0..1500 {
        if std::fs::create_dir(&directory).is_ok() {
            std::fs::remove_dir(&directory).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
    }
    drop(ballast);
    goes_on(&mut Acknowledged::default(), &folder, 10_000);
    assert_calm(&mut cell);
    drop(user);
    cell.stop();
}

/// State, cache and log of the cell are on the disk: whatever is written there, also the line that says so, finds no room.
#[test]
fn a_cell_whose_disk_is_full_goes_on_and_starts_again() {
    if !all_there(&[Need::Fuse, Need::Root]) {
        return;
    }
    let setup = Setup::new("full_cell", 17, seconds(240));
    let disk = SmallDisk::new(setup.scratch().folder("disk"), 200);
    let start = || {
        let cell = setup.serve_in(disk.path(), "rlidwk");
        (cell, Mount::new(setup.netns(), CELL, setup.address(), disk.path(), "user", &[]))
    };
    let (mut cell, mut user) = start();
    let folder = user.path().join("folder");
    std::fs::create_dir(&folder).unwrap();
    let mut expected = Acknowledged::default();
    (0..30).for_each(|number| written(&mut expected, &folder, number, 100_000).unwrap());

    let full = disk.fill();
    let shown = folder.display().to_string();
    for round in 0..2 {
        let _ = command(setup.netns(), &["fs", "flush", &shown]);
        let _ = command(setup.netns(), &["fs", "flushvolume", &shown]);
        expected.verify(&folder);
        // As on a local disk, a file of which a part was written is there with that part.
        let spare = |number| folder.join(format!("spare{number}"));
        let refused = (0..5).filter(|number| std::fs::write(spare(*number), vec![7; 50_000]).is_err());
        assert!(refused.count() > 0, "a full disk took files");
        (0..5).for_each(|number| drop(std::fs::remove_file(spare(number))));
        let name = format!("file{round}");
        expected.attempt(&name, None);
        std::fs::remove_file(folder.join(&name)).unwrap();
        expected.acknowledge(&name);
    }
    assert_calm(&mut cell);
    assert!(!user.process.is_over());

    user.kill();
    cell.kill();
    drop((user, cell, full));
    let full = disk.fill();
    let (mut cell, user) = start();
    expected.verify(&folder);
    for name in expected.present().iter().take(8) {
        expected.attempt(name, None);
        std::fs::remove_file(folder.join(name)).unwrap();
        expected.acknowledge(name);
    }
    drop(full);
    goes_on(&mut expected, &folder, 5000);
    expected.verify(&folder);
    assert_calm(&mut cell);
    drop(user);
    cell.stop();
}

/// Writes a new file; records it if acknowledged.
fn written(expected: &mut Acknowledged, folder: &Path, number: u64, length: u64) -> io::Result<()> {
    let (name, version) = (format!("file{number}"), Version::new(number, length));
    expected.attempt_to_write(&name, version);
    write_and_close(&folder.join(&name), &version.bytes())?;
    expected.acknowledge(&name);
    Ok(())
}

/// Freed space becomes available soon, not at once.
fn goes_on(expected: &mut Acknowledged, folder: &Path, first: u64) {
    let mut number = first;
    until("room for a file again", seconds(60), || {
        number += 1;
        written(expected, folder, number, 20_000).ok()
    });
}

#[test]
fn a_quota_is_told_of_at_close() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("quota", 8, seconds(120));
    let mut cell = setup.up("rl", &[]);
    let folder = cell.mount().join("folder");
    std::fs::create_dir(&folder).unwrap();
    fs_do("setquota", &[cell.mount().as_os_str(), OsStr::new("2048")]);
    let mut expected = Acknowledged::default();
    (0..4).for_each(|number| written(&mut expected, &folder, number, 450_000).unwrap());
    // A store may overrun by 1 MiB: docs/protocol/fileserver.md "11. Quota and space".
    let refused = written(&mut expected, &folder, 10, 2_000_000).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EDQUOT), "{refused}");

    let other = setup.mount("other", &[]);
    expected.verify(&other.path().join("folder"));
    // Writes that fit are accepted, none when the quota is used up, and all when it is raised.
    written(&mut expected, &folder, 100, 4_000).unwrap();
    written(&mut expected, &folder, 101, 400_000).unwrap();
    let refused = std::fs::File::create(folder.join("one-more")).unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(libc::EDQUOT), "{refused}");
    fs_do("setquota", &[cell.mount().as_os_str(), OsStr::new("0")]);
    (102..106).for_each(|number| written(&mut expected, &folder, number, 400_000).unwrap());
    expected.verify(&other.path().join("folder"));
    assert_calm(&mut cell);
    drop(other);
    cell.stop();
}
