//! Processes that are killed at work.

use std::fs;

use andrew_tests::hostile::counters::counted;
use andrew_tests::hostile::writers::Writers;
use andrew_tests::live::closing::write_and_close;
use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::setup::Setup;

use crate::hostile::assert_calm;

#[test]
fn many_at_work_are_never_refused() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("at_work", 11, seconds(120));
    let mut cell = setup.serve_in(setup.scratch().path(), "rlidwk");
    let user = setup.mount("user", &[]);
    let folder = user.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let writers = Writers::start(&folder, 6, 4);
    writers.wait_for_more(600);
    assert_eq!(writers.refusals(), Vec::<String>::new());
    let expected = writers.finish();
    let fresh = setup.mount("fresh", &[]);
    expected.verify(&fresh.path().join("folder"));
    expected.verify(&folder);
    assert_calm(&mut cell);
    drop((user, fresh));
    cell.stop();
}

/// The kernel releases a file some time after its close. If the truncation by the next opener were stored then, a
/// server killed before the next close would have an empty file.
#[test]
fn a_file_rewritten_at_once_is_stored_once_for_each_close() {
    const CLOSES: u64 = 150;
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("rewritten", 12, seconds(120));
    let cell = setup.serve_in(setup.scratch().path(), "rlidwk");
    let user = setup.mount("user", &[]);
    let rewrite = |name: u8| {
        let path = user.path().join(name.to_string());
        (0..CLOSES).for_each(|_| write_and_close(&path, &[name; 50_000]).unwrap());
    };
    std::thread::scope(|scope| (0..4).for_each(|name| drop(scope.spawn(move || rewrite(name)))));
    assert_eq!(counted(user.path()).get("StoreData64"), Some(&(4 * CLOSES)));
    drop(user);
    cell.stop();
}

/// Number of times the server is killed.
const ROUNDS: u64 = 3;
/// Operations between two kills.
const OPERATIONS: u64 = 60;

#[test]
fn a_server_killed_at_work_has_what_it_acknowledged() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("killed_server", 9, seconds(400));
    let mut cell = setup.serve_in(setup.scratch().path(), "rlidwk");
    let user = setup.mount("user", &[]);
    let folder = user.path().join("folder");
    fs::create_dir(&folder).unwrap();
    let writers = Writers::start(&folder, 6, 1);
    for round in 0..ROUNDS {
        writers.wait_for_more(OPERATIONS);
        assert!(round > 0 || writers.refusals().is_empty(), "{:?}", writers.refusals());
        cell.kill();
        cell = setup.serve_in(setup.scratch().path(), "rlidwk");
    }
    writers.wait_for_more(OPERATIONS);
    let expected = writers.finish();
    let fresh = setup.mount("fresh", &[]);
    expected.verify(&fresh.path().join("folder"));
    expected.verify(&folder);
    assert_calm(&mut cell);
    drop((user, fresh));
    cell.stop();
}

#[test]
fn a_client_killed_at_work_comes_back_with_its_cache() {
    if !all_there(&[Need::Fuse]) {
        return;
    }
    let setup = Setup::new("killed_client", 10, seconds(300));
    let mut cell = setup.serve_in(setup.scratch().path(), "rlidwk");
    let mut user = setup.mount("user", &[]);
    let other = setup.mount("other", &[]);
    let (folder, cached) = (user.path().join("folder"), user.path().join("cached"));
    fs::create_dir(&folder).unwrap();
    fs::create_dir(&cached).unwrap();
    for number in 0..20 {
        write_and_close(&other.path().join(format!("cached/{number}")), &[number; 100_000]).unwrap();
        assert!(fs::read(cached.join(format!("{number}"))).unwrap() == [number; 100_000]);
    }
    let writers = Writers::start(&folder, 6, 2);
    writers.wait_for_more(100);
    assert_eq!(writers.refusals(), Vec::<String>::new());
    user.process.kill();
    let expected = writers.finish();
    // The killed client is not notified of this.
    write_and_close(&other.path().join("cached/3"), b"changed").unwrap();
    fs::remove_file(other.path().join("cached/4")).unwrap();

    // The same mount point, and the same cache.
    let again = setup.mount("user", &[]);
    for number in 0..20 {
        let seen = fs::read(cached.join(format!("{number}"))).ok();
        let expected = match number {
            3 => Some(b"changed".to_vec()),
            4 => None,
            _ => Some(vec![number; 100_000]),
        };
        assert!(seen == expected, "cached/{number} has {:?} bytes", seen.map(|seen| seen.len()));
    }
    let fetched = counted(again.path()).get("FetchData64").copied().unwrap_or(0);
    assert!(fetched <= 6, "{fetched} fetches for one file that changed: the cache was not used");
    expected.verify(&folder);
    expected.verify(&other.path().join("folder"));
    let writers = Writers::start(&folder, 3, 3);
    writers.wait_for_more(30);
    drop(writers.finish());
    assert_calm(&mut cell);
    drop((again, user, other));
    cell.stop();
}
