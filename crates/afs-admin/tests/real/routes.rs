//! The setting by which ways a volume's bytes may travel goes where the volume goes, between servers of ours.

use afs_admin::{CopyOptions, CreateOptions, MoveOptions, ReleaseOptions, ServerPartition};
use afs_wire::ids::VolumeId;
use afs_wire::vol::DataRoute;

use super::cell::{Cell, place};
use super::content::write;

/// A volume on the first partition of the first server, with something in it.
fn begin(seed: u64, servers: u8) -> (Cell, VolumeId) {
    let cell = Cell::new(seed, servers);
    let options = CreateOptions { name: "v".into(), place: place(0, 0), quota: 0, id: None };
    let volume = cell.run(|admin| async move { admin.create(options).await }).unwrap();
    write(&cell, place(0, 0), volume, "file", b"a few words");
    (cell, volume)
}

fn set(cell: &Cell, route: DataRoute) {
    cell.run(move |admin| async move { admin.set_route("v", route).await }).unwrap();
}

fn route(cell: &Cell, at: ServerPartition, volume: VolumeId) -> DataRoute {
    cell.store(at).volume(volume).unwrap().header().route
}

#[test]
fn a_volume_that_moves_keeps_its_setting_and_its_snapshots_have_it() {
    for wanted in DataRoute::ALL {
        let (cell, volume) = begin(601, 2);
        set(&cell, wanted);
        cell.run(|admin| async move { admin.create_snapshot("v", "monday").await }).unwrap();
        // To the other server, and there from partition to partition, both ways.
        for (to, live) in
            [(place(1, 1), false), (place(1, 0), true), (place(1, 1), false), (place(0, 0), true)]
        {
            let options = MoveOptions { volume: "v".into(), from: None, to, live, drop_snapshots: false };
            cell.run(|admin| async move { admin.move_volume(options).await }).unwrap();
            assert_eq!(route(&cell, to, volume), wanted, "on {to}");
            let snapshots = cell.run(|admin| async move { admin.snapshots("v").await }).unwrap();
            assert_eq!(snapshots.len(), 1);
            assert_eq!(route(&cell, to, snapshots[0].volume), wanted, "snapshot on {to}");
        }
    }
}

#[test]
fn replicas_and_copies_have_the_setting_of_their_volume_at_that_time() {
    let (cell, _) = begin(602, 3);
    for server in [1, 2] {
        cell.run(move |admin| async move { admin.add_site("v", place(server, 0), false).await }).unwrap();
    }
    for wanted in [DataRoute::Drives, DataRoute::Calls, DataRoute::Server] {
        set(&cell, wanted);
        let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
        cell.run(|admin| async move { admin.release(options).await }).unwrap();
        for server in [1, 2] {
            let replica = cell.volumes(place(server, 0))[0];
            assert_eq!(route(&cell, place(server, 0), replica), wanted, "server {server}");
        }
        let (volume, name, to) = ("v".into(), format!("w.{wanted}"), place(2, 1));
        let (read_only, offline, live, shadow, incremental) = (false, false, false, false, false);
        let options =
            CopyOptions { volume, name, to, read_only, offline, live, shadow, id: None, incremental };
        let copied = cell.run(|admin| async move { admin.copy_volume(options).await }).unwrap();
        assert_eq!(route(&cell, to, copied.volume), wanted, "copy");
    }
}
