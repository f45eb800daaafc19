//! Every kind of file with every damage: a cell, its mount and a drive on another host do what the table of `docs/format.md` says.

mod cases;
mod damage;
mod original;
mod site;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use andrew_tests::live::needs::{Need, all_there};
use andrew_tests::live::process::seconds;
use andrew_tests::live::scratch::{Scratch, unmount_below};
use andrew_tests::live::watchdog::Watchdog;

use cases::{Group, groups, kinds};
use original::Original;
use site::Site;

/// Sites on which cases are tried beside one another.
const SITES: usize = 2;

#[test]
fn every_file_with_every_damage_is_as_the_table_says() {
    if !all_there(&[Need::Root, Need::Fuse]) {
        return;
    }
    let scratch = Scratch::new("damaged-files");
    let folder = scratch.path().to_owned();
    let _watchdog = Watchdog::new("damaged-files", seconds(900), move || unmount_below(&folder));
    let rows = table::read();
    let mut first = Site::new("andrew-files-0", scratch.path().join("0"));
    let original = Original::make(&mut first, &scratch.path().join("original"));
    let (kinds, without_row) = kinds(&original, &rows);
    assert!(without_row.is_empty(), "files that the table does not have: {without_row:?}");
    for (number, row) in rows.iter().enumerate() {
        for pattern in &row.patterns {
            assert!(kinds.contains_key(&(number, pattern.clone())), "no file is one of {pattern}");
        }
    }
    let groups = Mutex::new(groups(&rows, &kinds));
    let mut sites = vec![first];
    for number in 1..SITES {
        let site = Site::new(&format!("andrew-files-{number}"), scratch.path().join(number.to_string()));
        site.take_users_of(&sites[0]);
        sites.push(site);
    }
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for site in &mut sites {
            let (original, groups, failed) = (&original, &groups, &failed);
            scope.spawn(move || work(site, original, groups, failed));
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(
        failed.is_empty(),
        "{} of the cases are not as the table says:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

/// Tries one group after the other; all that fail are told at the end.
fn work(site: &mut Site, original: &Original, groups: &Mutex<Vec<Group>>, failed: &Mutex<Vec<String>>) {
    loop {
        let next = groups.lock().unwrap().pop();
        let Some(group) = next else { return };
        let tried = catch_unwind(AssertUnwindSafe(|| group.try_at(original, site)));
        if let Err(panic) = tried {
            let said = panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "panicked".to_owned());
            failed.lock().unwrap().push(format!("{group:?}: {said}"));
            site.kill();
        }
    }
}
