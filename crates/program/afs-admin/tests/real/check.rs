//! Every kind of fault: it is reported, reporting changes nothing, a repair corrects what it can, and then
//! there is nothing to report.

use afs_admin::{
    CheckDirection, CheckOptions, CheckResult, CopyOptions, CreateOptions, Fault, GivenUp, ReleaseOptions,
    Remedy, ServerPartition,
};
use afs_wire::ids::VolumeId;
use afs_wire::vl::Entry;

use super::cell::{Cell, place};

fn create(cell: &Cell, name: &str, place: ServerPartition) -> VolumeId {
    let options = CreateOptions { name: name.into(), place, quota: 0, id: None };
    cell.run(|admin| async move { admin.create(options).await }).unwrap()
}

fn look(cell: &Cell, options: CheckOptions) -> CheckResult {
    cell.run(|admin| async move { admin.check(&options).await }).unwrap()
}

fn entries(cell: &Cell) -> Vec<Entry> {
    cell.run(|admin| async move { admin.entries(&afs_admin::EntryFilter::default()).await }).unwrap()
}

fn zap(cell: &Cell, place: ServerPartition, volume: VolumeId) {
    assert!(cell.run(move |admin| async move { admin.zap(place, volume, false).await }).unwrap());
}

fn faults(checked: &CheckResult) -> Vec<(Fault, bool)> {
    let mut all: Vec<_> = checked.findings.iter().map(|f| (f.fault, f.remedy == Remedy::Repair)).collect();
    all.sort();
    all
}

/// Checks twice, repairs, and checks again.
fn is_mended(cell: &Cell, wrong: &[(Fault, bool)]) {
    let before = entries(cell);
    for _ in 0..2 {
        assert_eq!(faults(&look(cell, CheckOptions::default())), wrong);
    }
    assert_eq!(entries(cell), before, "a look changes nothing");
    let mended = look(cell, CheckOptions { repair: true, ..CheckOptions::default() });
    let failed: Vec<_> = mended.findings.iter().filter(|f| matches!(f.remedy, Remedy::Failed(_))).collect();
    assert!(failed.is_empty(), "{failed:?}");
    let left: Vec<_> = wrong.iter().copied().filter(|(_, repair)| !repair).collect();
    assert_eq!(faults(&look(cell, CheckOptions::default())), left);
}

/// A complete group: on the first server, with a backup volume, a snapshot and copies on both.
fn whole(cell: &Cell) -> VolumeId {
    let volume = create(cell, "v", place(0, 0));
    cell.run(|admin| async move {
        admin.add_site("v", place(0, 0), false).await?;
        admin.add_site("v", place(1, 1), false).await?;
        admin.release(ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() }).await?;
        admin.backup("v").await?;
        admin.create_snapshot("v", "monday").await
    })
    .unwrap();
    volume
}

fn ids(cell: &Cell, name: &'static str) -> [VolumeId; 3] {
    cell.run(move |admin| async move { admin.group(name).await }).unwrap().entry.ids
}

#[test]
fn a_check_of_a_consistent_cell_reports_nothing() {
    let cell = Cell::new(1, 2);
    whole(&cell);
    let checked = look(&cell, CheckOptions::default());
    assert_eq!((checked.findings.clone(), checked.servers), (Vec::new(), 2));
    assert!(checked.is_clean() && checked.volumes == 5, "{checked:?}");
}

#[test]
fn lost_entries_are_made_again() {
    let cell = Cell::new(2, 2);
    let volume = whole(&cell);
    let (before, snapshot) = (ids(&cell, "v"), ids(&cell, "v.monday"));
    cell.lose_entry(volume);
    cell.lose_entry(snapshot[0]);
    assert_eq!(entries(&cell), []);
    let told = look(&cell, CheckOptions::default());
    assert!(told.findings.iter().all(|f| f.remedy == Remedy::Repair), "{told:?}");
    look(&cell, CheckOptions { repair: true, ..CheckOptions::default() });
    assert_eq!(look(&cell, CheckOptions::default()).findings, []);
    assert_eq!((ids(&cell, "v"), ids(&cell, "v.monday")), (before, snapshot));
    let sites = cell.run(|admin| async move { admin.group("v").await }).unwrap().entry.sites;
    assert_eq!(sites.len(), 3, "{sites:?}");
}

#[test]
fn lost_volumes_leave_their_entries() {
    let cell = Cell::new(3, 2);
    let (volume, _) = (whole(&cell), create(&cell, "other", place(1, 0)));
    let [_, read_only, backup] = ids(&cell, "v");
    zap(&cell, place(1, 1), read_only);
    zap(&cell, place(0, 0), backup);
    is_mended(&cell, &[(Fault::Missing, true), (Fault::Missing, true)]);
    let [snapshot, ..] = ids(&cell, "v.monday");
    zap(&cell, place(0, 0), read_only);
    zap(&cell, place(0, 0), snapshot);
    zap(&cell, place(0, 0), volume);
    is_mended(&cell, &[(Fault::Missing, false), (Fault::Missing, false), (Fault::Missing, true)]);
    let given_up = GivenUp::Named(vec!["v".into(), snapshot.to_string()]);
    look(&cell, CheckOptions { repair: true, given_up, ..CheckOptions::default() });
    assert_eq!(look(&cell, CheckOptions::default()).findings, []);
    let names: Vec<_> = entries(&cell).iter().map(|e| e.name.to_string()).collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn a_strayed_volume_is_found() {
    let cell = Cell::new(4, 2);
    create(&cell, "v", place(0, 0));
    cell.run(|admin| async move { admin.change_location("v", place(1, 1)).await }).unwrap();
    is_mended(&cell, &[(Fault::Elsewhere, true)]);
    let home = cell.run(|admin| async move { admin.group("v").await }).unwrap().home();
    assert_eq!(home, Some(place(0, 0)));
}

#[test]
fn problems_for_an_administrator_are_reported_and_not_changed() {
    let cell = Cell::new(5, 2);
    let volume = create(&cell, "v", place(0, 0));
    let copy = |name: &str, id| CopyOptions {
        volume: "v".into(),
        name: name.into(),
        to: place(1, 0),
        read_only: false,
        offline: true,
        live: false,
        shadow: true,
        id,
        incremental: false,
    };
    let (second, taken) = (copy("v", None), copy("v", Some(VolumeId(volume.0 + 100))));
    cell.run(|admin| async move { admin.copy_volume(second).await }).unwrap();
    cell.run(|admin| async move { admin.copy_volume(taken).await }).unwrap();
    cell.run(|admin| async move { admin.lock("v").await }).unwrap();
    let wrong =
        [(Fault::NoEntry, false), (Fault::TwoReadWrite, false), (Fault::Lock, false), (Fault::Counter, true)];
    is_mended(&cell, &wrong);
    let told = look(&cell, CheckOptions::default());
    let run: Vec<_> = told.findings.iter().map(|f| f.remedy.clone()).collect();
    assert!(
        run.iter().all(|r| matches!(r, Remedy::Person(run) if run.starts_with("andrew vos "))),
        "{run:?}"
    );
}

#[test]
fn a_server_that_is_away_is_left_alone() {
    let cell = Cell::new(6, 2);
    create(&cell, "v", place(1, 0));
    let lost = create(&cell, "lost", place(0, 0));
    zap(&cell, place(0, 0), lost);
    cell.lose(1);
    let before = entries(&cell);
    let checked = look(&cell, CheckOptions { repair: true, ..CheckOptions::default() });
    assert_eq!(checked.silent.len(), 1);
    // It may have moved to the server that does not reply.
    assert!(matches!(checked.findings[..], [ref f] if matches!(f.remedy, Remedy::Person(_))), "{checked:?}");
    assert_eq!(entries(&cell), before);
}

#[test]
fn one_server_one_volume_one_half() {
    let cell = Cell::new(7, 2);
    let (a, b) = (create(&cell, "a", place(0, 0)), create(&cell, "b", place(1, 0)));
    zap(&cell, place(0, 0), a);
    zap(&cell, place(1, 0), b);
    let all = CheckOptions::default;
    let of_first = CheckOptions { server: Some(place(0, 0).server), ..all() };
    assert_eq!(look(&cell, of_first).findings[0].volume, a);
    let of_b = CheckOptions { volume: Some("b".into()), ..all() };
    assert_eq!(look(&cell, of_b).findings[0].volume, b);
    assert_eq!(look(&cell, CheckOptions { direction: CheckDirection::Volumes, ..all() }).findings, []);
    assert_eq!(look(&cell, CheckOptions { direction: CheckDirection::Entries, ..all() }).findings.len(), 2);
}

/// A volume that is being moved is not diagnosed.
#[test]
fn a_volume_that_is_being_moved_is_not_diagnosed() {
    (8..24).for_each(leaves_alone_what_is_under_way);
}

fn leaves_alone_what_is_under_way(seed: u64) {
    let cell = Cell::new(seed, 2);
    create(&cell, "v", place(0, 0));
    let (admin, checker) = (cell.admin(), cell.admin());
    let moving = async move {
        let options = afs_admin::MoveOptions {
            volume: "v".into(),
            from: None,
            to: place(1, 0),
            live: false,
            drop_snapshots: false,
        };
        admin.move_volume(options).await
    };
    let looking = async move {
        let mut findings = Vec::new();
        for _ in 0..20 {
            findings.extend(checker.check(&CheckOptions::default()).await?.findings);
        }
        Ok::<_, afs_admin::AdminError>(findings)
    };
    let both = afs_rpc::future::join(moving, looking);
    let (moved, found) =
        cell.sim.block_on(cell.tool, std::time::Duration::from_secs(600), both).expect("both come to an end");
    moved.unwrap();
    assert_eq!(found.unwrap(), [], "seed {seed}");
}
