//! Tests with sound and with damaged location databases.

use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionId, UnixSeconds, Uuid, VolumeId};

use super::*;
use crate::import::samples::{FIRST_ENTRY, LocationFile, SAMPLE_UUID, log};
use crate::import::{ImportError, Source};
use crate::location::{entries, list, servers};
use crate::{Entry, LocationError, MemoryRows, Proposal, ProposedSite, ServerSlot, Site};

const RW: [u8; 3] = [0, 0, 4];
const RO: [u8; 3] = [1, 1, 2];

fn sample(version: u32) -> LocationFile {
    let mut file = LocationFile::new(version);
    file.entry("root.cell", [100, 101, 0], &[RW, RO]);
    file.entry("home.alice", [110, 0, 112], &[RW]);
    // In the same bucket as the first.
    file.entry("other", [100 + 8191, 0, 0], &[RO]);
    file
}

fn read_file(file: &LocationFile) -> ReadLocation {
    read(&file.file.bytes(), None).unwrap()
}

fn names(read: &ReadLocation) -> Vec<&str> {
    read.entries.iter().map(|entry| entry.name.as_str()).collect()
}

fn said(read: &ReadLocation) -> String {
    read.findings.kept().iter().map(|finding| format!("{finding}\n")).collect()
}

#[test]
fn every_version_tells_the_same() {
    for version in [2, 3, 4] {
        let mut file = sample(version);
        file.file.word(FIRST_ENTRY + 12, 0x3000 | 0x80);
        file.file.word(FIRST_ENTRY + 20, 77);
        file.file.word(FIRST_ENTRY + 24, 109);
        let read = read_file(&file);
        let lost_block = u64::from(version != 4);
        assert_eq!(
            (read.findings.damages(), read.findings.differences()),
            (lost_block, 0),
            "{}",
            said(&read)
        );
        assert_eq!((read.format, read.next_volume_id.0), (version, 0x2000_0100));
        assert_eq!(names(&read), ["root.cell", "home.alice", "other"]);
        let site = |slot, partition, flags| Site {
            server: ServerSlot(slot),
            partition: PartitionId(partition),
            flags,
        };
        let root = Entry {
            name: "root.cell".into(),
            ids: [100, 101, 0].map(VolumeId),
            clone: VolumeId(109),
            flags: 0x3080,
            locked: UnixSeconds(77),
            sites: vec![site(1, 0, 4), site(2, 1, 2)],
        };
        assert_eq!(read.entries[0], root);
    }
}

#[test]
fn registered_servers_keep_their_permanent_names() {
    let read = read_file(&sample(4));
    assert_eq!(read.servers[0].addresses, [Ipv4Addr::new(10, 0, 0, 1)]);
    let second = &read.servers[1];
    assert_eq!((second.slot, second.uuid, second.uniquifier), (ServerSlot(2), Some(Uuid(SAMPLE_UUID)), 5));
    assert_eq!(second.addresses, [Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 1, 0, 2)]);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let refuse = |bytes: &[u8]| read(&bytes, None).unwrap_err().to_string();
    assert!(refuse(&[]).contains("too short"));
    assert!(refuse(&[0; 200]).contains("no database of OpenAFS"));
    let mut file = sample(4);
    file.file.word(0, 7);
    assert!(refuse(file.file.bytes()).contains("version 2, 3 or 4 (it says 7)"));
    let mut half_received = sample(4).file.bytes().to_vec();
    half_received[8..16].fill(0);
    assert!(refuse(&half_received).contains("marked as not whole"));
}

#[test]
fn a_source_that_fails_is_told_with_its_place() {
    struct Failing;
    impl Source for Failing {
        fn size(&self) -> u64 {
            200_000
        }
        fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), String> {
            Err("the disk is broken".into())
        }
    }
    let error = read(&Failing, None).unwrap_err();
    assert_eq!(error, ImportError::Read { offset: 0, why: "the disk is broken".into() });
}

#[test]
fn a_committed_log_is_taken_in_and_another_is_not() {
    let file = sample(4);
    let change = [b"home.bobby".as_slice(), &[0]].concat();
    for committed in [true, false] {
        let log = log(FIRST_ENTRY + 148 + 44, &change, committed);
        let read = read(&file.file.bytes(), Some(&log.as_slice())).unwrap();
        assert_eq!(names(&read)[1] == "home.bobby", committed, "{}", said(&read));
        assert_eq!(read.version.counter, if committed { 10 } else { 9 });
    }
}

#[test]
fn a_log_may_make_the_database_longer() {
    let mut longer = sample(4);
    let end = longer.entry("late", [900, 0, 0], &[RW]) + 148;
    let mut file = sample(4);
    // The header's own pages as the change leaves them, then the entry.
    for at in [12, 1060 + 4 * super::name_bucket(b"late") as u32, 33_824 + 4 * 900] {
        let word = longer.file.get(at);
        file.file.word(at, word);
    }
    let start = 64 + (end - 148) as usize;
    let log = log(end - 148, &longer.file.bytes()[start..], true);
    let read = read(&file.file.bytes(), Some(&log.as_slice())).unwrap();
    assert_eq!(names(&read).last(), Some(&"late"), "{}", said(&read));
    assert_eq!(read.findings.damages(), 0, "{}", said(&read));
}

#[test]
fn a_broken_chain_loses_nothing_and_is_told() {
    for wild in [5, 132_120 + 40, FIRST_ENTRY + 3 * 148, u32::MAX] {
        let mut file = sample(4);
        file.file.word(1060 + 4 * super::name_bucket(b"home.alice") as u32, wild);
        let read = read_file(&file);
        assert_eq!(names(&read), ["root.cell", "home.alice", "other"], "{wild}");
        assert_eq!((read.findings.damages(), read.findings.differences()), (1, 1), "{}", said(&read));
        assert!(said(&read).contains(&format!("leads to address {wild}")), "{}", said(&read));
    }
}

#[test]
fn a_chain_in_a_circle_ends() {
    let mut file = sample(4);
    // The entry of that bucket names itself as the next.
    file.file.word(FIRST_ENTRY + 148 + 40, FIRST_ENTRY + 148);
    let read = read_file(&file);
    assert_eq!(names(&read).len(), 3);
    assert!(said(&read).contains("for the second time"), "{}", said(&read));
}

#[test]
fn entries_behind_a_block_that_lost_its_mark_are_found() {
    let mut file = sample(4);
    file.file.word(132_116, 0);
    file.file.word(132_120 + 12, 0);
    let read = read_file(&file);
    // The third is only at the server that was in the block.
    assert_eq!(names(&read), ["root.cell", "home.alice"], "{}", said(&read));
    assert!(said(&read).contains("only a hash chain leads to this entry"), "{}", said(&read));
    assert!(
        said(&read).contains("server number 1 is in an extension block that is not there"),
        "{}",
        said(&read)
    );
    assert!(read.findings.damages() > 0);
}

#[test]
fn of_two_entries_with_one_id_the_one_stays_that_its_name_leads_to() {
    let mut file = sample(4);
    let late = file.entry("late", [110, 0, 0], &[RW]);
    file.file.word(1060 + 4 * super::name_bucket(b"late") as u32, 0);
    let read = read_file(&file);
    assert_eq!(names(&read), ["root.cell", "home.alice", "other"]);
    assert!(said(&read).contains("entry late claims what is of entry home.alice"), "{}", said(&read));
    assert_eq!(read.findings.kept()[0].offset, 64 + u64::from(late));
}

#[test]
fn a_file_that_is_cut_short_gives_what_is_there() {
    let mut file = sample(4);
    let len = file.file.bytes().len();
    file.file.cut(len - 150);
    let read = read_file(&file);
    assert_eq!(names(&read), ["root.cell"]);
    assert!(said(&read).contains("the file is cut short"), "{}", said(&read));
}

#[test]
fn free_and_deleted_slots_are_no_entries() {
    let mut file = sample(4);
    for (n, flag) in [(0, 1), (1, 2)] {
        let at = FIRST_ENTRY + n * 148;
        file.file.word(at + 12, flag);
    }
    let read = read_file(&file);
    assert_eq!((names(&read), read.deleted), (vec!["other"], 1));
}

fn part(read: &ReadLocation) -> Part {
    Part {
        servers: read.servers.clone(),
        entries: read.entries.clone(),
        next_volume_id: read.next_volume_id,
        first: true,
        last: true,
        merge: false,
        replace: false,
    }
}

#[test]
fn imported_entries_are_read_back_unchanged() {
    let read = read_file(&sample(4));
    let mut rows = MemoryRows::default();
    let merged = write(&mut rows, &part(&read)).unwrap();
    assert_eq!((merged.added, merged.there, merged.servers, merged.conflicts.len()), (3, 0, 2, 0));
    let page = list::page(&rows, &crate::Filter::default(), 0, 10).unwrap();
    let listed: Vec<&Entry> = page.entries.iter().map(|listed| &listed.located.entry).collect();
    assert_eq!(listed, read.entries.iter().collect::<Vec<_>>());
    assert_eq!(servers::all(&rows).unwrap(), read.servers);
    assert_eq!(crate::location::volume_ids::current(&rows), Ok(VolumeId(0x2000_0100)));
    assert_eq!(crate::location::volume_ids::allocate(&mut rows, 1), Ok(VolumeId(0x2000_0100)));
    assert_eq!(is_unfinished(&rows), Ok(false));
}

#[test]
fn a_database_with_entries_is_left_alone_unless_it_is_to_be_merged() {
    let read = read_file(&sample(4));
    let mut rows = MemoryRows::default();
    create(&mut rows, "mine", 500, [10, 1, 0, 2]).unwrap();
    let before = format!("{rows:?}");
    let refused = write(&mut rows, &part(&read)).unwrap();
    assert_eq!(refused.conflicts, ["the location database has 1 entries already"]);
    assert_eq!(format!("{rows:?}"), before);

    let merging = Part { merge: true, ..part(&read) };
    assert_eq!(check(&rows, &merging).unwrap().added, 3);
    assert_eq!(write(&mut rows, &merging).unwrap().added, 3);
    // The server was there, unregistered, and is the registered one of the file.
    let mine = entries::by_name(&rows, "mine").unwrap().1;
    let other = entries::by_name(&rows, "other").unwrap().1;
    assert_eq!(mine.sites[0].server, other.sites[0].server);
    assert_eq!(servers::by_uuid(&rows, Uuid(SAMPLE_UUID)).unwrap().unwrap().slot, mine.sites[0].server);
    assert_eq!(write(&mut rows, &merging).unwrap().there, 3);
}

#[test]
fn an_entry_in_conflict_stops_the_whole_import() {
    let read = read_file(&sample(4));
    let mut rows = MemoryRows::default();
    create(&mut rows, "home.alice", 600, [10, 0, 0, 9]).unwrap();
    let before = format!("{rows:?}");
    let merged = write(&mut rows, &Part { merge: true, ..part(&read) }).unwrap();
    let text = "entry home.alice [110, 0, 112] is another here, or has ids of another: home.alice";
    assert_eq!(merged.conflicts, [text]);
    assert_eq!(format!("{rows:?}"), before);
}

#[test]
fn volumes_in_conflict_are_replaced_on_request() {
    let read = read_file(&sample(4));
    let mut rows = MemoryRows::default();
    create(&mut rows, "home.alice", 600, [10, 0, 0, 9]).unwrap();
    create(&mut rows, "mine", 700, [10, 0, 0, 9]).unwrap();
    let replacing = Part { replace: true, ..part(&read) };
    let merged = write(&mut rows, &replacing).unwrap();
    assert_eq!((merged.added, merged.replaced, merged.conflicts.len()), (3, 1, 0));
    assert_eq!(entries::by_name(&rows, "home.alice").unwrap().1.ids[0], VolumeId(110));
    assert_eq!(entries::by_name(&rows, "mine").unwrap().1.ids[0], VolumeId(700));
    assert_eq!(entries::count(&rows), Ok(4));
    let again = write(&mut rows, &replacing).unwrap();
    assert_eq!((again.added, again.there, again.replaced), (0, 3, 0));
}

#[test]
fn an_import_that_was_interrupted_goes_on() {
    let read = read_file(&sample(4));
    let mut rows = MemoryRows::default();
    let mut whole = part(&read);
    let first = Part { entries: whole.entries[..1].to_vec(), last: false, ..whole.clone() };
    write(&mut rows, &first).unwrap();
    assert_eq!(is_unfinished(&rows), Ok(true));
    whole.merge = false;
    let merged = write(&mut rows, &whole).unwrap();
    assert_eq!((merged.there, merged.added, merged.conflicts.len()), (1, 2, 0));
    assert_eq!(is_unfinished(&rows), Ok(false));
}

fn create(rows: &mut MemoryRows, name: &str, id: u32, address: [u8; 4]) -> Result<(), LocationError> {
    let site = ProposedSite { address: address.into(), partition: 0, flags: 4 };
    let proposal = Proposal {
        name: name.into(),
        ids: [id, 0, 0].map(VolumeId),
        clone: VolumeId(0),
        flags: 0x1000,
        sites: vec![site],
    };
    entries::create(rows, &proposal)
}
