//! dump, restore, size.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use andrew_tests::live::dumps::{assert_alike, vnodes};
use andrew_tests::live::manifest::{Manifest, assert_same, manifest, quota};
use andrew_tests::live::pair::Pair;
use andrew_tests::live::process::seconds;
use andrew_tests::live::tree::change;
use andrew_tests::live::wait::until;

use super::pair;

#[test]
fn dumps_restore_what_was_dumped() {
    let Some(pair) = pair("openafs-vos-streams") else { return };
    let (point, first) = pair.volume_with_tree("v", "ONE a");
    let [full, piped, part, lean, cloned] =
        ["full", "piped", "part", "lean", "cloned"].map(|name| pair.folder().join(name));
    pair.vos(&format!("dump v -file {}", full.display()));
    let size = pair.vos("size v -dump");
    assert!(size.contains(&format!("dump_size: {}\n", fs::metadata(&full).unwrap().len())), "{size}");
    script(&pair, &format!("vos dump v -localauth > {}", piped.display()));
    assert_alike("through a pipe", &vnodes(&full), &vnodes(&piped));
    pair.vos(&format!("dump v -clone -file {}", cloned.display()));
    assert_alike("of a clone", &vnodes(&full), &vnodes(&cloned));

    let since = later();
    change(&point, 0);
    let second = manifest(&point);
    for (file, more) in [(&part, ""), (&lean, " -omitdirs")] {
        script(&pair, &format!("TZ=UTC vos dump v -time \"{since}\" -localauth{more} > {}", file.display()));
    }
    let len = |file: &Path| fs::metadata(file).unwrap().len();
    assert!(len(&lean) < len(&part) && len(&part) < len(&full));

    // New volumes: from a file, from a pipe, read-only, with a given number and date.
    let restored = restored(&pair, "r1", &format!("restore TWO a r1 -file {}", full.display()));
    assert_same("restored from a file", &first, &manifest(&restored));
    assert_eq!(quota(&restored).0, quota(&point).0);
    script(
        &pair,
        &format!(
            "vos dump v -localauth | vos restore {} b r2 -id 630000000 -creation dump -localauth",
            pair.one()
        ),
    );
    let through = pair.mounted("r2");
    assert_same("restored from a pipe", &second, &manifest(&through));
    pair.vos(&format!("restore ONE b r3 -readonly -file {}", full.display()));
    let copy = pair.mounted("r3.readonly");
    assert_same("restored read-only", &first, &manifest(&copy));
    assert!(fs::write(copy.join("no"), "").is_err());

    over_what_is_there(&pair, &restored, [&full, &part, &lean], [&first, &second]);
}

/// Onto an existing volume, which a client uses meanwhile.
fn over_what_is_there(
    pair: &Pair,
    point: &Path,
    [full, part, lean]: [&PathBuf; 3],
    [first, second]: [&Manifest; 2],
) {
    let restore = |file: &Path, how: &str| {
        pair.vos(&format!("restore TWO a r1 -file {} -overwrite {how}", file.display()));
    };
    assert!(
        pair.vos_refused(&format!("restore TWO a r1 -overwrite abort -file {}", full.display()))
            .contains("exists")
    );
    restore(part, "incremental");
    assert_same("an incremental dump", second, &manifest(point));
    change(point, 1);
    restore(full, "full");
    assert_same("a full one", first, &manifest(point));
    restore(lean, "incremental");
    assert_same("one without the directories that are the same", second, &manifest(point));
    change(point, 2);
    assert_ne!(second, &manifest(point));
}

fn restored(pair: &Pair, name: &str, line: &str) -> PathBuf {
    pair.vos(line);
    pair.mounted(name)
}

fn script(pair: &Pair, line: &str) {
    pair.hosts().tool("cl1", &["bash", "-o", "pipefail", "-c", line]);
}

/// Waits until further changes are later than all earlier ones, and returns the time in the format of `vos dump`, in
/// universal time.
fn later() -> String {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began = now().as_secs();
    until("the next second", seconds(30), || (now() >= Duration::from_secs(began + 1)).then_some(()));
    let mut date = std::process::Command::new("date");
    date.env("TZ", "UTC").args(["-d", &format!("@{}", began + 1), "+%m/%d/%Y %H:%M:%S"]);
    andrew_tests::live::process::run(date, seconds(10)).trim().to_owned()
}
