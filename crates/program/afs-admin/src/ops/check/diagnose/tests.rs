use super::*;
use afs_wire::ids::{KindNumber, PartitionId, VolumeKind};
use afs_wire::vl::SiteFlags;
use afs_wire::vol::{InfoStatus, NameChars, VolumeInfo};

use crate::ops::check::finding::GivenUp;
use crate::ops::check::snapshot::SiteReply;
use crate::ops::check::snapshot::SiteVolume;

const IDS: [VolumeId; 3] = [VolumeId(10), VolumeId(11), VolumeId(12)];

fn place(last: u8) -> ServerPartition {
    ServerPartition::new([192, 0, 2, last].into(), PartitionId(0))
}

fn seen(last: u8, kind: VolumeKind) -> SiteVolume {
    let info = VolumeInfo {
        name: NameChars::truncated(format!("v{}", kind.suffix()).as_bytes()),
        id: IDS[kind.index()],
        kind: KindNumber::from(kind),
        parent_id: IDS[0],
        status: InfoStatus::OK,
        in_use: true,
        ..VolumeInfo::default()
    };
    SiteVolume { place: place(last), info }
}

/// A consistent read-write volume on the first server.
fn good() -> GroupState {
    let entry = Entry {
        name: afs_wire::vl::NameChars::truncated(b"v"),
        sites: BoundedVec::first_of([place(1).site(SiteFlags::RW_VOLUME)]),
        ids: IDS,
        flags: EntryFlags::RW_EXISTS,
        ..Entry::default()
    };
    let asked = [1, 2, 3].map(|n| (place(n), SiteReply::Answered)).into();
    GroupState {
        key: IDS[0],
        entry: Some(entry),
        seen: vec![seen(1, VolumeKind::ReadWrite)],
        asked,
        ..GroupState::default()
    }
}

fn diagnosed(case: &GroupState, direction: CheckDirection) -> Diagnosis {
    diagnose(case, &CheckOptions { direction, ..CheckOptions::default() })
}

fn faults(case: &GroupState) -> Vec<(Fault, bool)> {
    let diagnosis = diagnosed(case, CheckDirection::Both);
    diagnosis.findings.iter().map(|f| (f.fault, f.remedy == Remedy::Repair)).collect()
}

/// Checks that a repaired case is consistent.
fn mended(case: &mut GroupState) -> Option<Entry> {
    let diagnosis = diagnosed(case, CheckDirection::Both);
    assert!(diagnosis.findings.iter().all(|f| f.remedy == Remedy::Repair), "{diagnosis:?}");
    assert!(!diagnosis.findings.is_empty());
    case.entry = diagnosis.entry;
    if case.entry.is_some() {
        assert_eq!(faults(case), []);
    }
    case.entry.clone()
}

#[test]
fn a_consistent_volume_is_not_reported() {
    assert_eq!(faults(&good()), []);
}

#[test]
fn a_volume_elsewhere_moves_its_entry() {
    let mut case = good();
    case.seen = vec![seen(2, VolumeKind::ReadWrite), seen(2, VolumeKind::Backup)];
    let entry = mended(&mut case).unwrap();
    assert_eq!(crate::group::home(&entry), Some(place(2)));
    assert!(entry.flags.contains(EntryFlags::BACK_EXISTS));
}

#[test]
fn while_the_server_of_the_entry_is_away_nothing_is_decided() {
    let mut case = good();
    case.asked.insert(place(1), SiteReply::Silent);
    case.seen.clear();
    assert_eq!(faults(&case), []);
    case.seen = vec![seen(2, VolumeKind::ReadWrite)];
    assert_eq!(faults(&case), [(Fault::Elsewhere, false)]);
    // A partition that is not mounted is no lost volume.
    case.asked.insert(place(1), SiteReply::NoPartition);
    case.seen.clear();
    assert_eq!(faults(&case), [(Fault::Missing, false)]);
}

#[test]
fn two_read_write_volumes_are_for_a_person() {
    let mut case = good();
    case.seen.push(seen(2, VolumeKind::ReadWrite));
    assert_eq!(faults(&case), [(Fault::TwoReadWrite, false)]);
    let diagnosis = diagnosed(&case, CheckDirection::Both);
    let Remedy::Person(run) = &diagnosis.findings[0].remedy else { panic!("not by itself") };
    assert!(run.starts_with("andrew vos dump ") && run.contains(".dump && andrew vos zap "), "{run}");
    case.seen.remove(0);
    case.seen.push(seen(3, VolumeKind::ReadWrite));
    assert_eq!(faults(&case), [(Fault::TwoReadWrite, false), (Fault::TwoReadWrite, false)]);
    case.entry = None;
    assert_eq!(faults(&case), [(Fault::TwoReadWrite, false), (Fault::TwoReadWrite, false)]);
}

#[test]
fn the_entry_of_a_read_write_volume_that_is_nowhere_goes_if_it_is_given_up_alone() {
    let mut case = good();
    case.seen.clear();
    case.some_silent = true;
    assert_eq!(faults(&case), [(Fault::Missing, false)]);
    case.some_silent = false;
    assert_eq!(faults(&case), [(Fault::Missing, false)]);
    let diagnosed = |given_up| diagnose(&case, &CheckOptions { given_up, ..CheckOptions::default() });
    let of_another = diagnosed(GivenUp::Named(vec!["w".into()]));
    assert_eq!(of_another.entry, case.entry);
    for given_up in [GivenUp::All, GivenUp::Named(vec!["v".into()]), GivenUp::Named(vec!["10".into()])] {
        let diagnosis = diagnosed(given_up);
        assert!(matches!(diagnosis.findings[..], [ref f] if f.remedy == Remedy::Repair));
        assert_eq!(diagnosis.entry, None);
    }
}

#[test]
fn a_volume_without_an_entry_gets_one() {
    let mut case = good();
    case.seen.push(seen(2, VolumeKind::ReadOnly));
    let mut info = case.seen[0].info;
    (info.clone_id, info.backup_id) = (IDS[1], IDS[2]);
    case.seen[0].info = info;
    case.entry = None;
    let entry = mended(&mut case).unwrap();
    assert_eq!((entry.ids, entry.sites.len()), (IDS, 2));
    case.entry = None;
    case.taken.insert("v".into());
    assert!(faults(&case).iter().all(|(fault, repair)| *fault == Fault::NoEntry && !repair));
    assert!(diagnosed(&case, CheckDirection::Both).entry.is_none());
}

#[test]
fn a_lost_copy_waits_for_a_release() {
    let mut case = good();
    let entry = case.entry.as_mut().unwrap();
    entry.flags = entry.flags.with(EntryFlags::RO_EXISTS).with(EntryFlags::BACK_EXISTS);
    entry.sites = BoundedVec::first_of([
        place(1).site(SiteFlags::RW_VOLUME),
        place(2).site(SiteFlags::RO_VOLUME),
        place(3).site(SiteFlags::RO_VOLUME),
    ]);
    case.seen.push(seen(2, VolumeKind::ReadOnly));
    assert_eq!(faults(&case), [(Fault::Missing, true), (Fault::Missing, true)]);
    let entry = mended(&mut case).unwrap();
    assert!(entry.flags.contains(EntryFlags::RO_EXISTS) && !entry.flags.contains(EntryFlags::BACK_EXISTS));
    assert!(entry.sites[2].flags.contains(SiteFlags::DONT_USE));
    case.seen.pop();
    let entry = mended(&mut case).unwrap();
    assert!(!entry.flags.contains(EntryFlags::RO_EXISTS) && entry.flags.contains(EntryFlags::RW_EXISTS));
}

#[test]
fn an_older_copy_is_entered_but_not_used() {
    let mut case = good();
    case.seen.extend([seen(2, VolumeKind::ReadOnly), seen(3, VolumeKind::ReadOnly)]);
    case.seen[1].info.update_date = afs_wire::ids::UnixSeconds(7);
    let entry = mended(&mut case).unwrap();
    let waits: Vec<_> = entry.sites.iter().map(|s| s.flags.contains(SiteFlags::DONT_USE)).collect();
    assert_eq!(waits, [false, false, true]);
}

#[test]
fn the_header_names_the_volume_unless_the_name_is_taken() {
    let mut case = good();
    case.seen[0].info.name = NameChars::truncated(b"w");
    assert_eq!(mended(&mut case).unwrap().name.to_string(), "w");
    case.seen[0].info.name = NameChars::truncated(b"x");
    case.taken.insert("x".into());
    assert_eq!(faults(&case), [(Fault::Name, false)]);
}

#[test]
fn under_a_lock_nothing_is_mended() {
    let mut case = good();
    case.seen.push(seen(1, VolumeKind::Backup));
    assert_eq!(faults(&case), [(Fault::Flag, true)]);
    case.entry.as_mut().unwrap().flags = EntryFlags(EntryFlags::RW_EXISTS.0 | 0x80);
    assert_eq!(faults(&case), [(Fault::Flag, false), (Fault::Lock, false)]);
}

#[test]
fn clones_of_operations_that_are_gone_are_told() {
    let mut case = good();
    let mut clone = seen(1, VolumeKind::ReadOnly);
    (clone.info.id, clone.info.name) = (VolumeId(99), NameChars::truncated(b"move-clone-temp"));
    case.seen.push(clone);
    assert_eq!(faults(&case), [(Fault::Leftover, false)]);
    // One made by a user is not in the location database either.
    case.seen[1].info.name = NameChars::truncated(b"v.clone");
    assert_eq!(faults(&case), [(Fault::NoEntry, false)]);
}

#[test]
fn each_half_sees_its_own() {
    let mut case = good();
    case.seen = vec![seen(2, VolumeKind::ReadWrite)];
    assert_eq!(diagnosed(&case, CheckDirection::Entries).findings.len(), 0);
    assert_eq!(diagnosed(&case, CheckDirection::Volumes).findings.len(), 1);
    case.seen.clear();
    assert_eq!(diagnosed(&case, CheckDirection::Entries).findings.len(), 1);
    assert_eq!(diagnosed(&case, CheckDirection::Volumes).findings.len(), 0);
}

#[test]
fn a_snapshot_is_no_backup_volume_and_gets_an_entry_of_its_own() {
    let mut case = good();
    let mut snapshot = seen(1, VolumeKind::Backup);
    (snapshot.info.id, snapshot.info.name) = (VolumeId(77), NameChars::truncated(b"v.monday"));
    case.seen.push(snapshot);
    case.snapshots.insert(VolumeId(77));
    assert_eq!(faults(&case), []);
    let mut alone =
        GroupState { key: VolumeId(77), seen: vec![snapshot], snapshots: [VolumeId(77)].into(), ..good() };
    alone.entry = None;
    let entry = mended(&mut alone).unwrap();
    assert_eq!((entry.name.to_string(), entry.ids[0]), ("v.monday".into(), VolumeId(77)));
}
