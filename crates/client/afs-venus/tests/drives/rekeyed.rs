//! Reads and stores after the key of a drive was changed.

use std::sync::Arc;

use afs_datapath::capability::DriveKey;
use afs_sim::crash::seeds;

use super::at_drives;
use super::common::pattern;
use super::scene::{MIB, Scene};

/// The drive has another key: layouts of before are void, and the next ones are sealed with it. No program notices.
#[test]
fn after_a_change_of_the_key_the_next_layouts_are_read_at_the_drive() {
    for seed in seeds(4) {
        let scene = Scene::new(seed);
        let files: Vec<_> = (0..6).map(|n| (format!("f{n}"), pattern(MIB, n))).collect();
        files.iter().for_each(|(name, bytes)| scene.put(name, bytes.clone()));
        let client = scene.warm(2);
        let (first, rest) = files.split_at(1);
        assert!(scene.get(&client, &first[0].0).unwrap() == first[0].1);
        let before = at_drives(&client);
        let present = scene.keys[0].present();
        let next = || DriveKey::new(present.drive(), present.epoch().next().unwrap(), [9; 32]);
        scene.keys[0].offer(Arc::new(next()));
        scene.hosts[0].served.replace_key(next());
        for (name, bytes) in rest {
            assert!(scene.get(&client, name).unwrap() == *bytes, "seed {seed}, {name}");
        }
        assert_eq!(scene.keys[0].present().epoch(), next().epoch());
        let (read, counters) = (at_drives(&client) - before, client.venus.counters());
        assert!(read >= 4 * MIB as u64, "seed {seed}: {read} {:?}", counters.drive_fallbacks);
        scene.put("after", pattern(MIB, 99));
        assert!(scene.get(&client, "after").unwrap() == pattern(MIB, 99));
    }
}
