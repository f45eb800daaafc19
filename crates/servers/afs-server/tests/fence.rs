//! A volume that another site has by the location database: out of service, also after a restart, with all that is in it.

#![allow(clippy::unwrap_used)] // A test that cannot go on says where.

use crate::rig;

use afs_server::ReadWriteVolume;
use afs_wire::error::AbortCode;
use afs_wire::fs::{self, SetStatus};
use afs_wire::ids::{Mode, PartitionNumber};
use afs_wire::vol::{self, AttachFlags, VolumeFlags};
use rig::{Cell, Claim, PATIENCE};

/// The read-write volume of the cell's root.
fn held(cell: &Cell) -> ReadWriteVolume {
    let volume = cell.root().volume;
    *cell.volume_server().read_write_volumes().iter().find(|held| held.volume == volume).unwrap()
}

fn fence(cell: &Cell, on: bool) {
    let (server, held) = (cell.volume_server(), held(cell));
    let work = async move {
        match on {
            true => server.fence(held, "192.0.2.1 /vicepa").await,
            false => server.lift_fence(held).await,
        }
    };
    cell.sim.block_on(cell.server, PATIENCE, work).unwrap().unwrap();
}

#[test]
fn clients_of_a_fenced_volume_are_sent_elsewhere_until_it_is_lifted() {
    let mut cell = Cell::new(640);
    let alice = cell.client(1).acting_as(&Claim::of("alice"));
    let fid = alice.create(cell.root(), "f").unwrap().fid;
    alice.store(fid, 0, b"kept").unwrap();
    assert!(!held(&cell).fenced);
    fence(&cell, true);
    for _ in 0..2 {
        assert!(held(&cell).fenced);
        let status = SetStatus { mode: Some(Mode(0o600)), ..SetStatus::default() };
        assert_eq!(alice.refusal(fs::FetchStatus { fid: cell.root() }), AbortCode::VMOVED);
        assert_eq!(alice.refusal(fs::StoreStatus { fid, status }), AbortCode::VMOVED);
        cell.restart();
    }
    fence(&cell, false);
    assert!(!held(&cell).fenced);
    assert_eq!(alice.fetch(fid, 0, 9).unwrap().0, b"kept");
    alice.store(fid, 0, b"more").unwrap();
}

#[test]
fn a_volume_that_its_administrator_took_off_line_is_not_put_into_service() {
    let cell = Cell::new(641);
    let owner = cell.owner();
    let volume = cell.root().volume;
    let taken = vol::TransCreate { volume, partition: PartitionNumber(0), flags: AttachFlags::OFFLINE };
    let transaction = owner.ask(taken).unwrap().transaction;
    owner.ask(vol::SetFlags { transaction, flags: VolumeFlags::OUT_OF_SERVICE }).unwrap();
    owner.ask(vol::EndTrans { transaction }).unwrap();
    assert!(!held(&cell).fenced);
    fence(&cell, false);
    assert_eq!(owner.refusal(fs::FetchStatus { fid: cell.root() }), AbortCode::VOFFLINE);
}
