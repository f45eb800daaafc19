//! A drive that nobody reaches, without copies: its files cannot be read, and nothing else is slower for it.

use afs_drive::DriveId;

use super::*;

const EIO: i32 = 5;

#[test]
fn a_drive_that_is_lost_costs_its_files_an_error_and_the_others_nothing() {
    for seed in 1..4 {
        let scene = Scene::new(seed);
        scene.put("far", pattern(3 * MIB, 1));
        scene.use_drives(&[DriveId::OWN]);
        let near: Vec<_> = (0..4).map(|n| (format!("near{n}"), pattern(2 * MIB, n))).collect();
        near.iter().for_each(|(name, bytes)| scene.put(name, bytes.clone()));
        let client = scene.warm(2);
        scene.cell.sim.crash(scene.hosts[0].node);
        let read = |path: &str| {
            let began = scene.cell.sim.now();
            let error = scene.get(&client, path).map(|_| ()).map_err(|error| error.errno());
            (error, (scene.cell.sim.now() - began).as_secs())
        };
        let (first, took) = read("far");
        assert!(first == Err(EIO) && took <= 60, "seed {seed}: {first:?} after {took} s");
        let before = client.venus.counters();
        for (name, bytes) in &near {
            assert!(scene.get(&client, name).unwrap() == *bytes, "seed {seed}, {name}");
        }
        let after = client.venus.counters();
        let by_path = after.path_bytes_fetched - before.path_bytes_fetched;
        assert_eq!(by_path, 8 * MIB as u64, "seed {seed}: {:?}", after.path_fallbacks);
        // It is known by now that the drive is away.
        let (again, took) = read("far");
        assert!(again == Err(EIO) && took <= 20, "seed {seed}: {again:?} after {took} s");
    }
}
