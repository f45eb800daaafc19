//! The volume service over the wire, and its effects on clients of the file service.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_wire::error::{AbortCode, Errno};
use afs_wire::fs;
use afs_wire::ids::{Fid, KindNumber, PartitionNumber, UnixSeconds, VolumeId, VolumeKind};
use afs_wire::vol::{self, AttachFlags, InfoStatus, TransactionId, VolumeFlags};
use rig::{Cell, Client, Heard};

const A: PartitionNumber = PartitionNumber(0);

fn text(name: &str) -> vol::NameText {
    vol::NameText::new(name.as_bytes()).unwrap()
}

fn creation(name: &str, id: u32) -> vol::CreateVolume {
    let kind = VolumeKind::ReadWrite.into();
    vol::CreateVolume { partition: A, name: text(name), kind, parent: VolumeId(0), volume: VolumeId(id) }
}

fn errno(errno: Errno) -> AbortCode {
    AbortCode(errno.number())
}

/// `vos create` after the location database has allocated an id.
fn create(owner: &Client, name: &str, id: u32) -> Fid {
    let made = owner.ask(creation(name, id)).unwrap();
    let transaction = made.transaction;
    let info = vol::VolumeInfo { quota_max: 777, ..vol::VolumeInfo::unchanged() };
    owner.ask(vol::SetInfo { transaction, info }).unwrap();
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
    assert_eq!(owner.ask(vol::EndTrans { transaction }).unwrap().return_code, 0);
    Fid::root(VolumeId(id))
}

/// As left by a tool whose dump was refused.
#[test]
fn a_volume_that_is_not_published_goes_with_the_transaction_that_made_it() {
    let cell = Cell::new(72);
    let owner = cell.owner();
    let here = || owner.ask(vol::ListOneVolume { partition: A, volume: VolumeId(900) });
    let transaction = owner.ask(creation("home", 900)).unwrap().transaction;
    assert!(here().is_ok());
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(here().unwrap_err().abort_code(), Some(errno(Errno::ENODEV)));
    // A volume published once stays, also when it is marked again.
    create(&owner, "home", 900);
    let again = vol::TransCreate { volume: VolumeId(900), partition: A, flags: AttachFlags::OFFLINE };
    let transaction = owner.ask(again).unwrap().transaction;
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags::DELETE_ON_SALVAGE }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert!(here().is_ok());
}

/// A tool whose server was restarted continues with the transaction id it knows. It must not be that of a
/// transaction that another tool has opened since.
#[test]
fn a_transaction_of_before_a_restart_is_nobodys_afterwards() {
    let mut cell = Cell::new(73);
    for (name, id) in [("mine", 900), ("yours", 901)] {
        create(&cell.owner(), name, id);
    }
    let on = |id| vol::TransCreate { volume: VolumeId(id), partition: A, flags: AttachFlags::BUSY };
    let transaction = cell.owner().ask(on(900)).unwrap().transaction;
    cell.restart();
    let owner = cell.owner();
    let yours = owner.ask(on(901)).unwrap().transaction;
    let closed = owner.ask(vol::SetFlags { transaction, flags: VolumeFlags::OUT_OF_SERVICE });
    assert_eq!(closed.unwrap_err().abort_code(), Some(errno(Errno::ENOENT)));
    let deleted = owner.ask(vol::DeleteVolume { transaction });
    assert_eq!(deleted.unwrap_err().abort_code(), Some(errno(Errno::ENOENT)));
    assert_eq!(owner.ask(vol::EndTrans { transaction: yours }).unwrap().return_code, 0);
}

#[test]
fn a_volume_is_made_in_secret_and_published() {
    let cell = Cell::new(71);
    let (client, owner) = (cell.client(1), cell.owner());
    let root = Fid::root(VolumeId(900));
    let transaction = owner.ask(creation("home", 900)).unwrap().transaction;
    assert_eq!(client.refusal(fs::FetchStatus { fid: root }), AbortCode::VNOVOL);
    let list = |flags| vol::ListVolumes { partition: A, flags };
    assert_eq!(client.ask(list(1)).unwrap().volumes.len(), 2, "not listed before it is published");
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags(0) }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(owner.fetch_status(root).unwrap().status.link_count, 2);
    assert_eq!(client.create(root, "x").unwrap_err().abort_code(), Some(Errno::EACCES.to_uae()));
    assert_eq!(client.ask(list(1)).unwrap().volumes.len(), 3);
    for (creation, code) in [
        (creation("other", 900), errno(Errno::EIO)),
        (creation("other", 0), errno(Errno::E2BIG)),
        (creation("bad name", 901), AbortCode::VOLSERBADNAME),
        (creation(&"x".repeat(32), 901), AbortCode::VOLSERBADNAME),
        (
            vol::CreateVolume { partition: PartitionNumber(3), ..creation("o", 9) },
            AbortCode::VOLSERILLEGAL_PARTITION,
        ),
        (vol::CreateVolume { kind: KindNumber(7), ..creation("o", 9) }, errno(Errno::EINVAL)),
    ] {
        assert_eq!(owner.refusal(creation.clone()), code, "{creation:?}");
    }
    assert!(owner.ask(vol::Monitor {}).unwrap().transactions.is_empty());
}

#[test]
fn volumes_are_looked_at_without_being_anybody() {
    let cell = Cell::new(72);
    let (client, owner) = (cell.client(1), cell.owner());
    create(&owner, "home", 900);
    let one = |volume| vol::ListOneVolume { partition: A, volume: VolumeId(volume) };
    let told = client.ask(one(900)).unwrap().volumes;
    let info = &told[0];
    assert_eq!((told.len(), info.name.text(), info.quota_max), (1, &b"home"[..], 777));
    assert_eq!((info.status, info.in_use, info.parent_id), (InfoStatus::OK, true, VolumeId(900)));
    assert_eq!((info.file_count, info.size > 0, info.kind), (1, true, KindNumber(0)));
    assert_eq!(client.refusal(one(901)), errno(Errno::ENODEV));
    let elsewhere = vol::ListOneVolume { partition: PartitionNumber(1), volume: VolumeId(900) };
    assert_eq!(client.refusal(elsewhere), AbortCode::VOLSERILLEGAL_PARTITION);
    let names = |volumes: vol::VolumeInfos| volumes.iter().map(|v| v.name.text().len()).collect::<Vec<_>>();
    assert_eq!(names(client.ask(vol::ListVolumes { partition: A, flags: 1 }).unwrap().volumes), [4, 8, 9]);
    assert_eq!(names(client.ask(vol::ListVolumes { partition: A, flags: 0 }).unwrap().volumes), [0, 0, 0]);
    let wide = client.ask(vol::XListOneVolume { partition: A, volume: VolumeId(900) }).unwrap().volumes;
    assert_eq!((wide.len(), wide[0].name.text()), (1, &b"home"[..]));
    assert_eq!(client.ask(vol::XListVolumes { partition: A, flags: 1 }).unwrap().volumes.len(), 3);
    assert_eq!(client.refusal(vol::GetNthVolume { index: 0 }), AbortCode::VOLSERNO_OP);
}

#[test]
fn partitions_are_looked_at() {
    let cell = Cell::new(73);
    let client = cell.client(1);
    assert_eq!(client.ask(vol::XListPartitions {}).unwrap().partitions.to_vec(), [A]);
    let slots = client.ask(vol::ListPartitions {}).unwrap().partitions.0;
    assert_eq!((slots[0], slots[1], slots[25]), (0, -1, -1));
    let name = |name: &str| vol::PartitionText::new(name.as_bytes()).unwrap();
    let wide = client.ask(vol::PartitionInfo64 { name: name("/vicepa") }).unwrap().partition;
    assert_eq!((wide.name.text(), wide.total_usable), (&b"/vicepa"[..], 0));
    assert!(wide.total > 0 && wide.free > 0 && wide.free <= wide.total);
    let narrow = client.ask(vol::PartitionInfo { name: name("/vicepa") }).unwrap().partition;
    assert_eq!(i64::from(narrow.total), wide.total);
    for bad in ["/vicepb", "nothing", ""] {
        assert_eq!(
            client.refusal(vol::PartitionInfo64 { name: name(bad) }),
            AbortCode::VOLSERILLEGAL_PARTITION
        );
    }
}

#[test]
fn a_transaction_keeps_clients_and_other_transactions_out() {
    let cell = Cell::new(74);
    let (client, owner) = (cell.client(1), cell.owner());
    let root = cell.root();
    let volume = root.volume;
    client.fetch_status(root).unwrap();
    client.heard();
    let open = |flags| vol::TransCreate { volume, partition: A, flags };
    assert_eq!(owner.refusal(open(AttachFlags(0))), errno(Errno::EINVAL));
    assert_eq!(
        owner.refusal(vol::TransCreate { volume: VolumeId(4), ..open(AttachFlags::BUSY) }),
        AbortCode::VNOVOL
    );
    let busy = owner.ask(open(AttachFlags::BUSY)).unwrap().transaction;
    assert_eq!(owner.refusal(open(AttachFlags::OFFLINE)), AbortCode::VOLSERVOLBUSY);
    client.fetch_status(root).unwrap();
    assert_eq!(client.create(root, "f").unwrap_err().abort_code(), Some(AbortCode::VBUSY));
    let listed = client.ask(vol::ListOneVolume { partition: A, volume }).unwrap().volumes;
    assert_eq!(listed[0].status, InfoStatus::BUSY);
    let told = client.ask(vol::Monitor {}).unwrap().transactions;
    assert_eq!((told.len(), told[0].volume, told[0].last_procedure.text()), (1, volume, &b"TransCreate"[..]));
    owner.ask(vol::EndTrans { transaction: busy }).unwrap();
    client.create(root, "f").unwrap();
    let offline = owner.ask(open(AttachFlags::OFFLINE)).unwrap().transaction;
    cell.sim.run_for(std::time::Duration::from_secs(1));
    assert_eq!(client.heard(), [Heard::Break(vec![Fid::whole_volume(volume)])]);
    assert_eq!(client.refusal(fs::FetchStatus { fid: root }), AbortCode::VOFFLINE);
    let out = vol::SetFlags { transaction: offline, flags: VolumeFlags::OUT_OF_SERVICE };
    owner.ask(out).unwrap();
    let flags = client.ask(vol::GetFlags { transaction: offline }).unwrap().flags;
    assert_eq!(flags, VolumeFlags::OUT_OF_SERVICE);
    owner.ask(vol::EndTrans { transaction: offline }).unwrap();
    assert_eq!(client.refusal(fs::FetchStatus { fid: root }), AbortCode::VOFFLINE, "still out of service");
}

#[test]
fn a_volume_is_renamed_dated_and_removed() {
    let cell = Cell::new(75);
    let (client, owner) = (cell.client(1), cell.owner());
    let root = create(&owner, "home", 900);
    let open = vol::TransCreate { volume: root.volume, partition: A, flags: AttachFlags::OFFLINE };
    let transaction = owner.ask(open).unwrap().transaction;
    let ids = |name: &str, kind, parent| vol::SetIdsTypes {
        transaction,
        name: text(name),
        kind: KindNumber(kind),
        parent: VolumeId(parent),
        clone: VolumeId(901),
        backup: VolumeId(902),
    };
    assert_eq!(owner.refusal(ids("house", 9, 900)), errno(Errno::EINVAL));
    owner.ask(ids("house", 0, 900)).unwrap();
    owner.ask(vol::SetDate { transaction, date: UnixSeconds(5000) }).unwrap();
    assert_eq!(owner.ask(vol::GetName { transaction }).unwrap().name.to_string(), "house");
    let status = client.ask(vol::GetStatus { transaction }).unwrap().status;
    assert_eq!(
        (status.creation_date, status.clone_id, status.backup_id),
        (UnixSeconds(5000), VolumeId(901), VolumeId(902))
    );
    assert_eq!((status.id, status.quota_max), (VolumeId(900), 777));
    owner.ask(vol::DeleteVolume { transaction }).unwrap();
    assert_eq!(owner.refusal(vol::GetName { transaction }), errno(Errno::ENOENT));
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(owner.refusal(vol::EndTrans { transaction }), errno(Errno::ENOENT));
    assert_eq!(client.refusal(fs::FetchStatus { fid: root }), AbortCode::VNOVOL);
    let nuke = |id| vol::NukeVolume { partition: A, volume: VolumeId(id) };
    assert_eq!(owner.refusal(nuke(900)), errno(Errno::ENODEV));
    create(&owner, "other", 950);
    owner.ask(nuke(950)).unwrap();
    assert_eq!(owner.refusal(fs::FetchStatus { fid: Fid::root(VolumeId(950)) }), AbortCode::VNOVOL);
}

#[test]
fn a_moved_volume_is_said_to_have_moved() {
    let cell = Cell::new(76);
    let (client, owner) = (cell.client(1), cell.owner());
    let root = create(&owner, "home", 900);
    let open = vol::TransCreate { volume: root.volume, partition: A, flags: AttachFlags::BUSY };
    let transaction = owner.ask(open).unwrap().transaction;
    owner.ask(vol::SetForwarding { transaction, site: [10, 0, 0, 9].into() }).unwrap();
    owner.ask(vol::DeleteVolume { transaction }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert_eq!(client.refusal(fs::FetchStatus { fid: root }), AbortCode::VMOVED);
}

#[test]
fn a_quota_below_zero_is_refused_and_changes_nothing() {
    let cell = Cell::new(79);
    let owner = cell.owner();
    let root = create(&owner, "home", 900);
    let open = vol::TransCreate { volume: root.volume, partition: A, flags: AttachFlags::BUSY };
    let transaction = owner.ask(open).unwrap().transaction;
    let info = vol::VolumeInfo { quota_max: -3, ..vol::VolumeInfo::unchanged() };
    assert_eq!(owner.refusal(vol::SetInfo { transaction, info }), errno(Errno::EINVAL));
    assert_eq!(owner.ask(vol::GetStatus { transaction }).unwrap().status.quota_max, 777);
}

#[test]
fn a_read_only_volume_names_itself_as_the_copy() {
    let cell = Cell::new(80);
    let owner = cell.owner();
    let kind = VolumeKind::ReadOnly.into();
    let copy = vol::CreateVolume { kind, parent: VolumeId(900), ..creation("home.readonly", 901) };
    let transaction = owner.ask(copy).unwrap().transaction;
    let status = owner.ask(vol::GetStatus { transaction }).unwrap().status;
    assert_eq!((status.parent_id, status.clone_id), (VolumeId(900), VolumeId(901)));
}

#[test]
fn unfinished_transactions_are_undone() {
    let cell = Cell::new(77);
    let owner = cell.owner();
    owner.ask(creation("half", 900)).unwrap();
    cell.sim.run_for(std::time::Duration::from_secs(660));
    assert!(owner.ask(vol::Monitor {}).unwrap().transactions.is_empty());
    let gone = vol::ListOneVolume { partition: A, volume: VolumeId(900) };
    assert_eq!(owner.refusal(gone), errno(Errno::ENODEV));
}

#[test]
fn changes_are_the_owners_alone() {
    let cell = Cell::new(78);
    let client = cell.client(1);
    let transaction = TransactionId(1);
    let access = AbortCode::VOLSERBAD_ACCESS;
    let volume = cell.volumes.root_cell;
    assert_eq!(client.refusal(creation("x", 5)), access);
    assert_eq!(client.refusal(vol::DeleteVolume { transaction }), access);
    assert_eq!(client.refusal(vol::NukeVolume { partition: A, volume }), access);
    let flags = AttachFlags::BUSY;
    assert_eq!(client.refusal(vol::TransCreate { volume, partition: A, flags }), access);
    assert_eq!(client.refusal(vol::EndTrans { transaction }), access);
    assert_eq!(client.refusal(vol::SetFlags { transaction, flags: VolumeFlags(0) }), access);
    let info = vol::VolumeInfo::unchanged();
    assert_eq!(client.refusal(vol::SetInfo { transaction, info }), access);
    assert_eq!(client.refusal(vol::SetDate { transaction, date: UnixSeconds(0) }), access);
    assert_eq!(client.refusal(vol::SetForwarding { transaction, site: [0; 4].into() }), access);
    let (name, kind, parent) = (text("x"), KindNumber(0), volume);
    let (clone, backup) = (volume, volume);
    assert_eq!(client.refusal(vol::SetIdsTypes { transaction, name, kind, parent, clone, backup }), access);
}
