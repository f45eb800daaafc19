//! The location service over the wire.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use std::net::Ipv4Addr;

use afs_wire::error::AbortCode;
use afs_wire::ids::{KindNumber, PartitionNumber, Uuid, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{self, ServerKey};
use afs_wire::xdr::BoundedVec;
use rig::{Cell, LOCATIONS, SERVER_IP, SERVER_UUID};

fn text(name: &str) -> vl::NameText {
    vl::NameText::new(name.as_bytes()).unwrap()
}

fn entry(name: &str, id: u32) -> vl::Entry {
    let site = vl::Site { server: SERVER_IP, partition: PartitionNumber(0), flags: vl::SiteFlags::RW_VOLUME };
    vl::Entry {
        name: vl::NameChars::new(name.as_bytes()).unwrap(),
        sites: BoundedVec::first_of([site]),
        ids: [VolumeId(id), VolumeId(id + 1), VolumeId(id + 2)],
        flags: vl::EntryFlags::RW_EXISTS,
        ..vl::Entry::default()
    }
}

/// The calls of kAFS and OpenAFS's cache manager, in their order.
#[test]
fn a_cache_manager_finds_a_volume_and_its_server() {
    let cell = Cell::new(61);
    let client = cell.client(1);
    assert_eq!(client.refusal(vl::GetCapabilities {}), AbortCode::RXGEN_OPCODE);
    let found = client.ask(vl::GetEntryByNameU { name: text("root.cell") }).unwrap().entry;
    assert_eq!((found.ids[0], found.sites.len()), (cell.volumes.root_cell, 1));
    let site = &found.sites[0];
    assert_eq!(site.server, SERVER_UUID);
    assert!(site.flags.contains(vl::SiteFlags::UUID) && site.flags.contains(vl::SiteFlags::RW_VOLUME));
    assert!(found.flags.contains(vl::EntryFlags::RW_EXISTS));
    let query = ServerKey::Uuid(site.server).into();
    let server = client.ask(vl::GetAddrsU { query }).unwrap();
    assert_eq!((server.count, server.addresses.to_vec()), (1, vec![SERVER_IP]));
    assert_eq!(server.unique, site.unique);
    let id = cell.volumes.root_cell.to_string();
    for name in ["root.cell.readonly", "root.cell.backup", &id] {
        assert_eq!(client.ask(vl::GetEntryByNameU { name: text(name) }).unwrap().entry.ids, found.ids);
    }
    for (name, code) in
        [("nothing", AbortCode::VL_NOENT), ("", AbortCode::VL_NOENT), ("a b", AbortCode::VL_BADNAME)]
    {
        assert_eq!(client.refusal(vl::GetEntryByNameU { name: text(name) }), code);
    }
    client.ask(vl::ProbeServer {}).unwrap();
}

#[test]
fn an_entry_lives_through_all_calls_of_the_tools() {
    let cell = Cell::new(62);
    let owner = cell.owner();
    let first = owner.ask(vl::GetNewVolumeId { count: 3 }).unwrap().first;
    owner.ask(vl::CreateEntryN { entry: entry("home", first.0) }).unwrap();
    let any = KindNumber::ANY;
    let told = owner.ask(vl::GetEntryByIdN { volume: VolumeId(first.0 + 1), kind: any }).unwrap().entry;
    assert_eq!(told, entry("home", first.0));
    let old = owner.ask(vl::GetEntryById { volume: first, kind: KindNumber(0) }).unwrap().entry;
    assert_eq!(vl::Entry::from(old), told);
    assert_eq!(owner.refusal(vl::CreateEntryN { entry: entry("home", 5) }), AbortCode::VL_NAMEEXIST);
    assert_eq!(owner.refusal(vl::CreateEntryN { entry: entry("h2", first.0) }), AbortCode::VL_IDEXIST);
    let lock = |operation| vl::SetLock { volume: first, kind: any, operation };
    assert_eq!(owner.refusal(lock(vl::LockOperation(3))), AbortCode::VL_BADVOLOPER);
    owner.ask(lock(vl::LockOperation::MOVE)).unwrap();
    assert_eq!(owner.refusal(lock(vl::LockOperation::MOVE)), AbortCode::VL_ENTRYLOCKED);
    let locked = owner.ask(vl::GetEntryByNameN { name: text("home") }).unwrap().entry;
    assert!(locked.flags.intersects(vl::EntryFlags::LOCK_OPERATIONS));
    let mut renamed = entry("house", first.0);
    renamed.flags = locked.flags;
    let (volume, kind, release) = (first, any, vl::ReleaseType::ALL);
    owner.ask(vl::ReplaceEntryN { volume, kind, entry: renamed, release }).unwrap();
    let told = owner.ask(vl::GetEntryByNameO { name: text("house") }).unwrap().entry;
    assert!(!told.flags.intersects(vl::EntryFlags::LOCK_OPERATIONS));
    owner.ask(lock(vl::LockOperation::DELETE)).unwrap();
    owner.ask(vl::ReleaseLock { volume, kind, release }).unwrap();
    let bad = vl::ReleaseLock { volume, kind, release: vl::ReleaseType(8) };
    assert_eq!(owner.refusal(bad), AbortCode::VL_BADRELLOCKTYPE);
    let update = vl::EntryUpdate { flags: Some(vl::EntryFlags::NONE), ..vl::EntryUpdate::default() };
    owner.ask(vl::UpdateEntryByName { name: text("house"), update, release: vl::ReleaseType(0) }).unwrap();
    owner.ask(vl::DeleteEntry { volume, kind }).unwrap();
    assert_eq!(owner.refusal(vl::DeleteEntry { volume, kind }), AbortCode::VL_NOENT);
    let odd = vl::GetEntryByIdN { volume, kind: KindNumber(3) };
    assert_eq!(owner.refusal(odd), AbortCode::VL_BADVOLTYPE);
}

#[test]
fn changes_are_the_owners_alone() {
    let cell = Cell::new(63);
    let client = cell.client(1);
    let (volume, kind, release) = (cell.volumes.root_cell, KindNumber::ANY, vl::ReleaseType::ALL);
    let (entry, update) = (entry("x", 5), vl::EntryUpdate::default());
    let perm = AbortCode::VL_PERM;
    let name = text("root.cell");
    assert_eq!(client.refusal(vl::CreateEntry { entry: entry.clone().into() }), perm);
    assert_eq!(client.refusal(vl::CreateEntryN { entry: entry.clone() }), perm);
    let replace = vl::ReplaceEntry { volume, kind, entry: entry.clone().into(), release };
    assert_eq!(client.refusal(replace), perm);
    assert_eq!(client.refusal(vl::ReplaceEntryN { volume, kind, entry, release }), perm);
    assert_eq!(client.refusal(vl::DeleteEntry { volume, kind }), perm);
    assert_eq!(client.refusal(vl::UpdateEntry { volume, kind, update: update.clone(), release }), perm);
    assert_eq!(client.refusal(vl::UpdateEntryByName { name, update, release }), perm);
    assert_eq!(client.refusal(vl::GetNewVolumeId { count: 0 }), perm);
    let operation = vl::LockOperation::MOVE;
    assert_eq!(client.refusal(vl::SetLock { volume, kind, operation }), perm);
    assert_eq!(client.refusal(vl::ReleaseLock { volume, kind, release }), perm);
    let addresses = BoundedVec::first_of([SERVER_IP]);
    assert_eq!(client.refusal(vl::RegisterAddrs { uuid: Uuid([1; 16]), spare: 0, addresses }), perm);
    assert_eq!(client.refusal(vl::ChangeAddr { old: SERVER_IP, new: SERVER_IP }), perm);
}

#[test]
fn lists_come_in_pages() {
    let cell = Cell::new(64);
    let (client, owner) = (cell.client(1), cell.owner());
    for n in 0..60 {
        owner.ask(vl::CreateEntryN { entry: entry(&format!("v{n}"), 1000 + 10 * n) }).unwrap();
    }
    let all = vl::Attributes::default();
    let page = |start, name: &str| vl::ListAttributesN2 { attributes: all, name: text(name), start };
    let told = client.ask(page(0, "")).unwrap();
    assert_eq!((told.count, told.entries.len(), told.next), (62, 62, -1));
    assert_eq!(client.ask(page(60, ".*")).unwrap().count, 3);
    assert_eq!(client.refusal(page(0, "v1.*")), AbortCode::VL_PERM);
    assert_eq!(owner.ask(page(0, "v1.*")).unwrap().count, 11);
    assert_eq!(owner.refusal(page(0, "v[1")), AbortCode::VL_BADNAME);
    assert_eq!(client.refusal(page(-5, "")), AbortCode::VL_BADINDEX);
    assert_eq!(client.ask(vl::ListAttributesN { attributes: all }).unwrap().count, 62);
    assert_eq!(client.ask(vl::ListAttributes { attributes: all }).unwrap().entries.len(), 62);
    assert_eq!(client.ask(vl::LinkedListN { attributes: all }).unwrap().entries.0.len(), 62);
    assert_eq!(client.ask(vl::LinkedList { attributes: all }).unwrap().count, 62);
    let elsewhere = vl::Attributes { server: Some(Ipv4Addr::new(10, 9, 9, 9)), ..all };
    assert_eq!(client.ask(vl::ListAttributesN { attributes: elsewhere }).unwrap().count, 0);
    let (mut index, mut walked) = (0, 0);
    loop {
        let told = client.ask(vl::ListEntryN { previous: index }).unwrap();
        if told.next == 0 {
            break;
        }
        (index, walked) = (told.next, walked + 1);
    }
    assert_eq!(walked, 62);
    assert_eq!(client.ask(vl::ListEntry { previous: 0 }).unwrap().entry.name.text(), b"root.afs");
    let stats = client.ask(vl::GetStats {}).unwrap();
    assert_eq!(stats.header.allocations, 62);
    assert!(stats.statistics.requests[534 - 501] >= 5 && stats.statistics.aborts[534 - 501] >= 3);
}

#[test]
fn servers_are_found_by_address_index_and_name() {
    let cell = Cell::new(65);
    let (client, owner) = (cell.client(1), cell.owner());
    let told = client.ask(vl::GetAddrs { handle: 0, spare: 0 }).unwrap();
    assert_eq!((told.count, told.addresses.to_vec()), (1, vec![u32::from(SERVER_IP)]));
    let find = |key: ServerKey| vl::GetAddrsU { query: key.into() };
    for key in [ServerKey::Address(SERVER_IP), ServerKey::Index(1), ServerKey::Uuid(SERVER_UUID)] {
        assert_eq!(client.ask(find(key)).unwrap().uuid, SERVER_UUID);
    }
    for (key, code) in [
        (ServerKey::Address(Ipv4Addr::new(9, 9, 9, 9)), AbortCode::VL_NOENT),
        (ServerKey::Index(2), AbortCode::VL_NOENT),
        (ServerKey::Index(0), AbortCode::VL_INDEXERANGE),
        (ServerKey::Index(255), AbortCode::VL_INDEXERANGE),
        (ServerKey::Uuid(Uuid([9; 16])), AbortCode::VL_NOENT),
    ] {
        assert_eq!(client.refusal(find(key)), code, "{key:?}");
    }
    let odd = vl::GetAddrsU { query: vl::AddressQuery { mask: 3, ..vl::AddressQuery::default() } };
    assert_eq!(client.refusal(odd), AbortCode::VL_BADMASK);
    let second = Ipv4Addr::new(10, 0, 0, 2);
    let addresses = BoundedVec::first_of([SERVER_IP, second, second]);
    let before = client.ask(find(ServerKey::Index(1))).unwrap().unique;
    owner.ask(vl::RegisterAddrs { uuid: SERVER_UUID, spare: 0, addresses }).unwrap();
    let after = client.ask(find(ServerKey::Address(second))).unwrap();
    assert_eq!((after.addresses.len(), after.unique), (2, before + 1));
    let remove = vl::ChangeAddr { old: vl::REMOVE_ADDRESS, new: SERVER_IP };
    assert_eq!(owner.refusal(remove), AbortCode::VL_IDEXIST, "volumes are recorded there");
}

#[test]
fn ubik_tools_see_a_healthy_quorum_of_one() {
    let cell = Cell::new(66);
    let client = cell.client(1);
    let ask = |opcode: u32| client.raw(LOCATIONS, ServiceId::UBIK_VOTE, opcode.to_be_bytes().to_vec());
    let words: Vec<u32> =
        ask(10_006).unwrap().chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!(words.len(), 28 + 256 + 1);
    assert_eq!((words[13], words[15], words[24]), (1, 1, 0x1f), "sync site, one server, all is well");
    assert_eq!(words[28], u32::from(SERVER_IP));
    assert_eq!(ask(10_004).unwrap().len(), 4 * (28 + 256));
    for (opcode, code) in [(10_007u32, AbortCode(2)), (10_000, AbortCode::RXGEN_OPCODE)] {
        let mut call = opcode.to_be_bytes().to_vec();
        call.extend([0; 4]);
        let refused = client.raw(LOCATIONS, ServiceId::UBIK_VOTE, call).unwrap_err();
        assert_eq!(refused.abort_code(), Some(code));
    }
}
