//! The settings by which ways a volume's bytes may travel, on which drives its data go, and whether its directories are leased, go where
//! the volume goes, between servers of ours.

use afs_admin::{CopyOptions, CreateOptions, MoveOptions, ReleaseOptions, ServerPartition};
use afs_wire::ids::{Uniquifier, UnixSeconds, VnodeId, VolumeId};
use afs_wire::vol::{ClosedPast, DataRoute, DriveCount, Lending, Modes, Placement};

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

fn lending(cell: &Cell, at: ServerPartition, volume: VolumeId) -> Lending {
    let known = cell.run(move |admin| async move { Ok(admin.lending_at(at.server, volume).await) }).unwrap();
    let kept = cell.store(at).volume(volume).unwrap().header().lending;
    assert_eq!(known, Some(kept));
    kept
}

fn route(cell: &Cell, at: ServerPartition, volume: VolumeId) -> DataRoute {
    cell.store(at).volume(volume).unwrap().header().route
}

#[test]
fn a_volume_that_moves_keeps_its_setting_and_its_snapshots_have_it() {
    for wanted in DataRoute::ALL {
        let (cell, volume) = begin(601, 2);
        set(&cell, wanted);
        cell.run(|admin| async move { admin.set_lending("v", Lending::Off).await }).unwrap();
        cell.run(|admin| async move { admin.create_snapshot("v", "monday").await }).unwrap();
        // To the other server, and there from partition to partition, both ways.
        for (to, live) in
            [(place(1, 1), false), (place(1, 0), true), (place(1, 1), false), (place(0, 0), true)]
        {
            let options = MoveOptions { volume: "v".into(), from: None, to, live, drop_snapshots: false };
            cell.run(|admin| async move { admin.move_volume(options).await }).unwrap();
            assert_eq!(
                (route(&cell, to, volume), lending(&cell, to, volume)),
                (wanted, Lending::Off),
                "on {to}"
            );
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

/// Each number of copies with each width, and the default.
fn placements() -> Vec<Placement> {
    let counts: Vec<_> = (1..=3).filter_map(DriveCount::new).collect();
    let copies = [None].into_iter().chain(counts.iter().copied().map(Some));
    copies.zip(counts.iter().copied().cycle()).map(|(copies, width)| Placement { copies, width }).collect()
}

fn place_on(cell: &Cell, placement: Placement) {
    let Placement { copies, width } = placement;
    cell.run(move |admin| async move { admin.set_copies("v", copies).await }).unwrap();
    cell.run(move |admin| async move { admin.set_width("v", width).await }).unwrap();
}

fn placement(cell: &Cell, at: ServerPartition, volume: VolumeId) -> Placement {
    let known =
        cell.run(move |admin| async move { Ok(admin.placement_at(at.server, volume).await) }).unwrap();
    let kept = cell.store(at).volume(volume).unwrap().header().placement;
    assert_eq!(known, Some(kept));
    kept
}

#[test]
fn a_volume_that_moves_keeps_its_placement_and_its_copies_and_replicas_have_it() {
    let (cell, volume) = begin(603, 3);
    cell.run(|admin| async move { admin.create_snapshot("v", "monday").await }).unwrap();
    cell.run(|admin| async move { admin.add_site("v", place(2, 0), false).await }).unwrap();
    let sites = [place(1, 1), place(1, 0), place(0, 1), place(0, 0)];
    for (wanted, to) in placements().into_iter().zip(sites) {
        place_on(&cell, wanted);
        let options = MoveOptions { volume: "v".into(), from: None, to, live: false, drop_snapshots: false };
        cell.run(|admin| async move { admin.move_volume(options).await }).unwrap();
        assert_eq!(placement(&cell, to, volume), wanted, "on {to}");
        let snapshots = cell.run(|admin| async move { admin.snapshots("v").await }).unwrap();
        assert_eq!(placement(&cell, to, snapshots[0].volume), wanted, "snapshot on {to}");
        let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
        cell.run(|admin| async move { admin.release(options).await }).unwrap();
        let replica = cell.volumes(place(2, 0))[0];
        assert_eq!(placement(&cell, place(2, 0), replica), wanted, "replica");
        let (volume, name) =
            ("v".into(), format!("w.{copies}", copies = wanted.copies.map_or(0, DriveCount::get)));
        let (read_only, offline, live, shadow, incremental) = (false, false, false, false, false);
        let to = place(2, 1);
        let options =
            CopyOptions { volume, name, to, read_only, offline, live, shadow, id: None, incremental };
        let copied = cell.run(|admin| async move { admin.copy_volume(options).await }).unwrap();
        assert_eq!(placement(&cell, to, copied.volume), wanted, "copy");
    }
}

/// What a volume withholds beyond its lists: a setting of administrators, and what users have closed, which a change of the setting keeps.
#[test]
fn privacy_goes_where_its_volume_goes() {
    let (cell, volume) = begin(604, 2);
    cell.run(|admin| async move { admin.create_snapshot("v", "monday").await }).unwrap();
    let closed = vec![ClosedPast { vnode: VnodeId(1), unique: Uniquifier(1), until: UnixSeconds(7) }];
    let store = cell.store(place(0, 0)).volume(volume).unwrap();
    let users = closed.clone();
    cell.run(move |_| async move {
        let edit = store.edit(move |tx| {
            tx.edit_header().closed_pasts = users;
            Ok(())
        });
        edit.await.unwrap();
        Ok(())
    })
    .unwrap();
    let sites = [place(1, 1), place(1, 0), place(0, 0)];
    for (to, modes) in sites.into_iter().zip([Modes::Close, Modes::Ignored, Modes::Close]) {
        cell.run(move |admin| async move { admin.set_modes("v", modes).await }).unwrap();
        let options = MoveOptions { volume: "v".into(), from: None, to, live: false, drop_snapshots: false };
        cell.run(|admin| async move { admin.move_volume(options).await }).unwrap();
        let header = cell.store(to).volume(volume).unwrap().header();
        assert_eq!((header.modes, &header.closed_pasts), (modes, &closed), "on {to}");
        assert_eq!(cell.run(|admin| async move { admin.modes("v").await }).unwrap(), modes);
    }
}
