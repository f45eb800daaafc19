//! Location of cells and volumes: several cells, and unreachable or old location servers.

// Helpers of tests: what fails here is a failed test.
#![allow(clippy::unwrap_used)]

mod cells;
use crate::common;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use afs_rpc::Table;
use afs_venus::MemoryCache;
use afs_wire::error::AbortCode;
use afs_wire::ids::{PartitionNumber, VolumeId};
use afs_wire::rpc::ServiceId;
use afs_wire::vl::{self, Entry, EntryFlags, NameChars, Site, SiteFlags};
use afs_wire::xdr::BoundedVec;
use common::{Cell, ROOT, SERVER};

/// Address of a possible location server.
fn place(number: u8) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(10, 0, 0, 200 + number).into(), 7003)
}

#[test]
fn another_location_server_replaces_an_unreachable_one() {
    let cell = Cell::new(1);
    let here = SocketAddr::new(SERVER.into(), 7003);
    *cell.locations.lock().unwrap() = vec![place(0), here, place(1)];
    for number in 1..5 {
        let a = cell.client(number);
        let one = a.clone();
        cell.on(&a, async move {
            one.mount(&format!("proj{number}"), "#proj.").await.unwrap();
        });
    }
}

/// A location server that has one volume and does not know the calls with UUIDs.
fn old_server(cell: &Cell, at: SocketAddr) -> afs_rpc::Rx {
    let node = cell.sim.node("old", at.ip());
    let rx = cell.sim.rx(node, cell.sim.env(node), at, Default::default(), Default::default());
    let id = cell.volume(ROOT);
    let table = Table::new(ServiceId::LOCATION, Arc::new(id)).call(
        |id: Arc<VolumeId>, _, request: vl::GetEntryByNameN| async move {
            let asked = request.name.to_text();
            if asked != ROOT && asked != id.to_string() {
                return Err(AbortCode::VL_NOENT);
            }
            let site = Site { server: SERVER, partition: PartitionNumber(0), flags: SiteFlags::RW_VOLUME };
            let entry = Entry {
                name: NameChars::new(ROOT.as_bytes()).unwrap(),
                sites: BoundedVec::first_of([site]),
                ids: [*id, VolumeId(0), VolumeId(0)],
                flags: EntryFlags::RW_EXISTS,
                ..Entry::default()
            };
            Ok(vl::EntryReply { entry })
        },
    );
    rx.listen(Arc::new(table)).unwrap();
    rx
}

#[test]
fn a_location_server_without_uuids_is_used() {
    let cell = Cell::new(2);
    let _old = old_server(&cell, place(0));
    *cell.locations.lock().unwrap() = vec![place(0)];
    let a = cell.client_with(1, Arc::new(MemoryCache::new(1 << 20)));
    let one = a.clone();
    cell.on(&a, async move {
        one.put("file", b"x").await.unwrap();
        assert_eq!(one.get("file").await.unwrap(), b"x");
        one.mount("proj", "#proj.").await.unwrap();
        assert_eq!(one.names("proj").await.unwrap_err().errno(), 19);
    });
}
