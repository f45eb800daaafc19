//! The rules of docs/protocol vldb.md "4. Semantics", one test each, over a plain map.

use std::net::Ipv4Addr;

use afs_wire::ids::{PartitionId, UnixSeconds, VolumeId, VolumeKind};

use super::entry::{entry_flags, site_flags};
use super::{entries, list, lock, servers, update, volume_ids};
use crate::{
    EntryUpdate, FIRST_VOLUME_ID, Filter, LocationError, MemoryRows, Pattern, Proposal, ProposedSite,
    Refusal, Release, SiteChange, SiteUpdate,
};

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, last)
}

fn site(last: u8, partition: i32, flags: u8) -> ProposedSite {
    ProposedSite { address: ip(last), partition, flags: i32::from(flags) }
}

fn proposal(name: &str, rw: u32) -> Proposal {
    Proposal {
        name: name.into(),
        ids: [VolumeId(rw), VolumeId(rw + 1), VolumeId(rw + 2)],
        clone: VolumeId(0),
        flags: entry_flags::RW_EXISTS,
        sites: vec![site(1, 0, site_flags::READ_WRITE)],
    }
}

fn refused<T>(refusal: Refusal) -> Result<T, LocationError> {
    Err(refusal.into())
}

fn with_root_cell() -> MemoryRows {
    let mut rows = MemoryRows::default();
    entries::create(&mut rows, &proposal("root.cell", 100)).unwrap();
    rows
}

#[test]
fn entries_are_found_by_name_suffix_and_every_id() {
    let rows = with_root_cell();
    for name in ["root.cell", "root.cell.readonly", "root.cell.backup", "100", "101", "102"] {
        assert_eq!(entries::by_name(&rows, name).unwrap().1.name, "root.cell", "{name}");
    }
    let table = [
        ("root", Refusal::NoEntry),
        ("", Refusal::NoEntry),
        ("99999999999", Refusal::NoEntry),
        ("a b", Refusal::BadName),
    ];
    for (name, refusal) in table {
        assert_eq!(entries::by_name(&rows, name), refused(refusal), "{name}");
    }
    for (id, kind, found) in [
        (100, None, true),
        (100, Some(VolumeKind::ReadWrite), true),
        (100, Some(VolumeKind::ReadOnly), false),
        (102, Some(VolumeKind::Backup), true),
        (0, None, false),
    ] {
        assert_eq!(entries::by_id(&rows, VolumeId(id), kind).is_ok(), found, "{id} {kind:?}");
    }
}

#[test]
fn creation_checks_everything_first() {
    let good = || proposal("new", 200);
    let table: Vec<(Proposal, Refusal)> = vec![
        (Proposal { name: "no good".into(), ..good() }, Refusal::BadName),
        (Proposal { name: "123".into(), ..good() }, Refusal::BadName),
        (Proposal { sites: vec![], ..good() }, Refusal::BadServer),
        (Proposal { sites: vec![site(1, 0, 4); 14], ..good() }, Refusal::BadServer),
        (Proposal { sites: vec![site(1, 256, 4)], ..good() }, Refusal::BadPartition),
        (Proposal { sites: vec![site(1, -1, 4)], ..good() }, Refusal::BadPartition),
        (Proposal { sites: vec![site(1, 0, 0x81)], ..good() }, Refusal::BadSiteFlag),
        (proposal("new", 102), Refusal::IdExists),
        (proposal("new", 98), Refusal::IdExists),
        (proposal("root.cell", 200), Refusal::NameExists),
    ];
    for (proposal, refusal) in table {
        let mut rows = with_root_cell();
        assert_eq!(entries::create(&mut rows, &proposal), refused(refusal), "{proposal:?}");
        assert_eq!(entries::count(&rows), Ok(1));
    }
}

/// What `vos copy -readonly` enters for the copy.
#[test]
fn a_read_only_volume_that_stands_alone_is_entered_under_one_id_twice() {
    let mut rows = with_root_cell();
    let ids = [VolumeId(200), VolumeId(200), VolumeId(0)];
    entries::create(&mut rows, &Proposal { ids, ..proposal("new", 200) }).unwrap();
    for kind in [None, Some(VolumeKind::ReadWrite), Some(VolumeKind::ReadOnly)] {
        assert!(entries::by_id(&rows, VolumeId(200), kind).is_ok());
    }
    entries::delete(&mut rows, VolumeId(200), None).unwrap();
    assert!(entries::by_id(&rows, VolumeId(200), None).is_err());
}

#[test]
fn zero_ids_do_not_collide() {
    let mut rows = MemoryRows::default();
    for (name, id) in [("a", 1), ("b", 2)] {
        let ids = [VolumeId(id), VolumeId(0), VolumeId(0)];
        entries::create(&mut rows, &Proposal { ids, ..proposal(name, id) }).unwrap();
    }
    assert_eq!(entries::count(&rows), Ok(2));
}

#[test]
fn unknown_servers_join_the_table_once() {
    let mut rows = with_root_cell();
    entries::create(&mut rows, &proposal("other", 200)).unwrap();
    let servers = servers::all(&rows).unwrap();
    assert_eq!(servers.len(), 1);
    assert_eq!((servers[0].uuid, servers[0].first_address()), (None, ip(1)));
}

#[test]
fn replacement_keeps_the_read_write_id_and_the_indexes() {
    let mut rows = with_root_cell();
    entries::create(&mut rows, &proposal("other", 200)).unwrap();
    let replace = |rows: &mut MemoryRows, new: &Proposal| {
        entries::replace(rows, VolumeId(100), None, new, Release::NOTHING)
    };
    let moved =
        Proposal { name: "top".into(), sites: vec![site(2, 1, site_flags::READ_WRITE)], ..proposal("", 100) };
    assert_eq!(replace(&mut rows, &proposal("root.cell", 300)), refused(Refusal::BadEntry));
    let stolen = Proposal { ids: [VolumeId(100), VolumeId(200), VolumeId(0)], ..proposal("root.cell", 100) };
    assert_eq!(replace(&mut rows, &stolen), refused(Refusal::IdExists));
    assert_eq!(replace(&mut rows, &proposal("other", 100)), refused(Refusal::NameExists));
    assert_eq!(
        entries::replace(&mut rows, VolumeId(9), None, &moved, Release::NOTHING),
        refused(Refusal::NoEntry)
    );
    replace(&mut rows, &moved).unwrap();
    assert_eq!(entries::by_name(&rows, "root.cell"), refused(Refusal::NoEntry));
    let located = entries::locate(&rows, entries::by_name(&rows, "top").unwrap()).unwrap();
    assert_eq!(located.servers[0].first_address(), ip(2));
    assert_eq!(located.entry.sites[0].partition, PartitionId(1));
}

#[test]
fn names_are_exchanged_with_all_ways_to_the_entries() {
    let mut rows = with_root_cell();
    entries::create(&mut rows, &proposal("other", 700)).unwrap();
    let root = entries::by_name(&rows, "root.cell").unwrap();
    entries::exchange_names(&mut rows, root.1.ids[0], VolumeId(700)).unwrap();
    let (row, entry) = entries::by_name(&rows, "other.readonly").unwrap();
    assert_eq!((row, &entry.ids, &*entry.name), (root.0, &root.1.ids, "other"));
    assert_eq!(entries::by_name(&rows, "root.cell").unwrap().1.ids[0], VolumeId(700));
    assert_eq!(entries::by_id(&rows, VolumeId(700), None).unwrap().1.name, "root.cell");
    let none = entries::exchange_names(&mut rows, VolumeId(700), VolumeId(9));
    assert_eq!(none, refused(Refusal::NoEntry));
    entries::exchange_names(&mut rows, VolumeId(700), VolumeId(700)).unwrap();
    assert_eq!(entries::by_name(&rows, "root.cell").unwrap().1.ids[0], VolumeId(700));
}

#[test]
fn deletion_forgets_every_way_to_the_entry() {
    let mut rows = with_root_cell();
    entries::delete(&mut rows, VolumeId(101), Some(VolumeKind::ReadOnly)).unwrap();
    for name in ["root.cell", "100", "101", "102"] {
        assert_eq!(entries::by_name(&rows, name), refused(Refusal::NoEntry));
    }
    assert_eq!(entries::delete(&mut rows, VolumeId(100), None), refused(Refusal::NoEntry));
    assert_eq!(servers::change_address(&mut rows, Ipv4Addr::BROADCAST, ip(1)), Ok(()));
    entries::create(&mut rows, &proposal("root.cell", 100)).unwrap();
}

#[test]
fn locks_exclude_and_release() {
    let mut rows = with_root_cell();
    let now = UnixSeconds(5);
    let id = VolumeId(100);
    for operation in [0, 1, entry_flags::MOVE | entry_flags::RELEASE, 0x200] {
        assert_eq!(
            lock::set(&mut rows, id, None, operation, now),
            refused(Refusal::BadOperation),
            "{operation:#x}"
        );
    }
    assert_eq!(lock::set(&mut rows, VolumeId(9), None, entry_flags::MOVE, now), refused(Refusal::NoEntry));
    lock::set(&mut rows, id, None, entry_flags::RELEASE, now).unwrap();
    assert_eq!(lock::set(&mut rows, id, None, entry_flags::MOVE, now), refused(Refusal::EntryLocked));
    assert_eq!(
        entries::by_id(&rows, id, None).unwrap().1.flags & entry_flags::OPERATIONS,
        entry_flags::RELEASE
    );
    lock::release(&mut rows, id, None, Release::from_wire(1).unwrap()).unwrap();
    assert_eq!(lock::set(&mut rows, id, None, entry_flags::MOVE, now), refused(Refusal::Rerelease));
    lock::release(&mut rows, id, None, Release::ALL).unwrap();
    lock::set(&mut rows, id, None, entry_flags::MOVE, now).unwrap();
    assert_eq!(Release::from_wire(8), Err(Refusal::BadRelease));
    assert_eq!(Release::from_wire(0), Ok(Release::NOTHING));
}

#[test]
fn replacement_may_release_the_lock() {
    let mut rows = with_root_cell();
    let entry = Proposal { flags: entry_flags::RW_EXISTS | entry_flags::MOVE, ..proposal("root.cell", 100) };
    for (release, locked, flags) in [
        (Release::NOTHING, 5, entry_flags::MOVE | entry_flags::RW_EXISTS),
        (Release::ALL, 0, entry_flags::RW_EXISTS),
    ] {
        lock::set(&mut rows, VolumeId(100), None, entry_flags::MOVE, UnixSeconds(5)).ok();
        entries::replace(&mut rows, VolumeId(100), None, &entry, release).unwrap();
        let (_, entry) = entries::by_id(&rows, VolumeId(100), None).unwrap();
        assert_eq!((entry.locked.0, entry.flags), (locked, flags));
    }
}

#[test]
fn volume_ids_start_high_skip_what_is_taken_and_read_without_reserving() {
    let mut rows = MemoryRows::default();
    let first = FIRST_VOLUME_ID.0;
    assert_eq!(volume_ids::allocate(&mut rows, 0), Ok(VolumeId(first)));
    assert_eq!(volume_ids::allocate(&mut rows, 3), Ok(VolumeId(first)));
    entries::create(&mut rows, &proposal("a", first + 4)).unwrap();
    assert_eq!(volume_ids::allocate(&mut rows, 2), Ok(VolumeId(first + 7)));
    assert_eq!(volume_ids::allocate(&mut rows, 0), Ok(VolumeId(first + 9)));
    assert_eq!(volume_ids::allocate(&mut rows, 0x8000_0000), refused(Refusal::BadIdBump));
}

fn update_root(rows: &mut MemoryRows, change: &EntryUpdate) -> Result<(), LocationError> {
    let found = entries::by_name(rows, "root.cell")?;
    update::update(rows, found, change, Release::NOTHING)
}

fn one_site(last: u8, partition: i32, change: SiteChange) -> EntryUpdate {
    EntryUpdate { sites: vec![SiteUpdate { address: ip(last), partition, change }], ..EntryUpdate::default() }
}

#[test]
fn updates_change_sites_one_by_one() {
    let mut rows = with_root_cell();
    let add = |last, partition| one_site(last, partition, SiteChange::Add { flags: 2 });
    assert_eq!(update_root(&mut rows, &add(1, 0)), refused(Refusal::DuplicateSite));
    assert_eq!(update_root(&mut rows, &one_site(9, 0, SiteChange::Delete)), refused(Refusal::NoSuchSite));
    for last in 2..=8 {
        update_root(&mut rows, &add(last, 0)).unwrap();
    }
    assert_eq!(update_root(&mut rows, &add(9, 0)), refused(Refusal::SitesFull));
    update_root(&mut rows, &one_site(8, 0, SiteChange::Delete)).unwrap();
    let change = SiteChange::Change { address: Some(ip(77)), partition: Some(3), flags: Some(0x20) };
    update_root(&mut rows, &one_site(2, 0, change)).unwrap();
    let located = entries::locate(&rows, entries::by_name(&rows, "root.cell").unwrap()).unwrap();
    assert_eq!(located.servers[1].first_address(), ip(77));
    assert_eq!((located.entry.sites[1].partition, located.entry.sites[1].flags), (PartitionId(3), 0x20));
}

#[test]
fn updates_change_names_and_ids() {
    let mut rows = with_root_cell();
    entries::create(&mut rows, &proposal("other", 200)).unwrap();
    let name = |name: &str| EntryUpdate { name: Some(name.into()), ..EntryUpdate::default() };
    assert_eq!(update_root(&mut rows, &name("other")), refused(Refusal::NameExists));
    assert_eq!(update_root(&mut rows, &name("o/o")), refused(Refusal::BadName));
    let ids = |ids| EntryUpdate { ids, ..EntryUpdate::default() };
    assert_eq!(update_root(&mut rows, &ids([None, Some(VolumeId(201)), None])), refused(Refusal::IdExists));
    update_root(&mut rows, &ids([None, Some(VolumeId(301)), None])).unwrap();
    assert_eq!(entries::by_id(&rows, VolumeId(301), None).unwrap().1.name, "root.cell");
    assert_eq!(entries::by_id(&rows, VolumeId(101), None), refused(Refusal::NoEntry));
}

fn many() -> MemoryRows {
    let mut rows = MemoryRows::default();
    for n in 0..10u32 {
        let mut entry = proposal(&format!("v{n}"), 100 + 10 * n);
        entry.sites = vec![site(1 + (n % 2) as u8, (n % 3) as i32, site_flags::READ_WRITE)];
        if n == 4 {
            entry.flags |= entry_flags::RO_EXISTS | entry_flags::MOVE;
            entry.sites.push(site(9, 0, site_flags::READ_ONLY));
        }
        entries::create(&mut rows, &entry).unwrap();
    }
    rows
}

fn names(rows: &MemoryRows, filter: &Filter, limit: usize) -> Vec<String> {
    let (mut names, mut start) = (Vec::new(), 0);
    loop {
        let page = list::page(rows, filter, start, limit).unwrap();
        assert!(page.entries.len() <= limit);
        names.extend(page.entries.into_iter().map(|listed| listed.located.entry.name));
        match page.next {
            Some(next) => start = next,
            None => return names,
        }
    }
}

#[test]
fn lists_filter_and_page() {
    let rows = many();
    for limit in [1, 3, 100] {
        assert_eq!(names(&rows, &Filter::default(), limit).len(), 10);
        let server = Filter { server: Some(ip(2)), ..Filter::default() };
        assert_eq!(names(&rows, &server, limit), ["v1", "v3", "v5", "v7", "v9"]);
        let both = Filter { partition: Some(PartitionId(0)), ..server };
        assert_eq!(names(&rows, &both, limit), ["v3", "v9"]);
        let flags = Filter { flags: Some(entry_flags::OPERATIONS), ..Filter::default() };
        assert_eq!(names(&rows, &flags, limit), ["v4"]);
        let unknown = Filter { server: Some(ip(200)), ..Filter::default() };
        assert!(names(&rows, &unknown, limit).is_empty());
        let name = Filter { name: Pattern::parse("v[2-4]").unwrap(), ..Filter::default() };
        assert_eq!(names(&rows, &name, limit), ["v2", "v3", "v4"]);
    }
}

#[test]
fn lists_contain_the_entries_that_matched() {
    let rows = many();
    let replica = Filter { name: Pattern::parse(r".*\.readonly").unwrap(), ..Filter::default() };
    let page = list::page(&rows, &replica, 0, 10).unwrap();
    let matched: Vec<_> =
        page.entries.iter().map(|e| (e.located.entry.name.as_str(), e.match_index)).collect();
    assert_eq!(matched, [("v4", u32::from(site_flags::READ_ONLY) << 16 | 1)]);
    let one = Filter { volume: Some(VolumeId(111)), ..replica };
    let page = list::page(&rows, &one, 0, 10).unwrap();
    assert_eq!((page.entries.len(), page.entries[0].match_index, page.next), (1, 0, None));
    let none = Filter { volume: Some(VolumeId(9)), ..Filter::default() };
    assert_eq!(list::page(&rows, &none, 0, 10), refused(Refusal::NoEntry));
}

#[test]
fn walking_reaches_every_entry_once() {
    let rows = many();
    let (mut row, mut seen) = (0, Vec::new());
    while let Some(located) = list::after(&rows, row).unwrap() {
        row = located.row;
        seen.push(located.entry.name);
    }
    assert_eq!(seen.len(), 10);
}
