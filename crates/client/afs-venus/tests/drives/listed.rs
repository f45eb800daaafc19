//! Files whose statuses came together: their layouts come together too, when some of them were read.

use std::sync::Arc;

use afs_testkit::FileCalls;
use afs_wire::error::AbortCode;
use afs_wire::fs::{GetLayout, GetLayoutReply, LayoutOutcome, LayoutOutcomes};

use super::*;

const FILES: usize = 200;
const LENGTH: usize = 70_000;

fn path(file: usize) -> String {
    format!("dir/f{file:03}")
}

/// A directory of files, and a client that is connected to their drive.
fn scene(seed: u64) -> (Scene, Client) {
    filled(Scene::new(seed), FILES)
}

/// So many files, of a file server that does something else with some calls.
fn scene_with(seed: u64, calls: FileCalls, files: usize) -> (Scene, Client) {
    filled(Scene::with_calls(seed, calls), files)
}

fn filled(scene: Scene, files: usize) -> (Scene, Client) {
    let writer = scene.writer.clone();
    scene.cell.on(&scene.writer, async move {
        writer.mkdir("dir").await.unwrap();
        for file in 0..files {
            writer.put(&path(file), &pattern(LENGTH, file as u64)).await.unwrap();
        }
    });
    let client = scene.warm(2);
    (scene, client)
}

/// Lists the directory and reads files; the calls for layouts.
fn read(scene: &Scene, client: &Client, files: std::ops::Range<usize>) -> u64 {
    let (before, here) = (client.calls("GetLayout"), client.clone());
    scene.cell.on(client, async move {
        let dir = here.find("dir").await.unwrap().node;
        here.venus.readdirplus(dir, 0, FILES + 2).await.unwrap();
        for file in files {
            assert!(here.get(&path(file)).await.unwrap() == pattern(LENGTH, file as u64), "file {file}");
        }
    });
    client.calls("GetLayout") - before
}

#[test]
fn two_hundred_cold_files_of_a_directory_cost_a_dozen_calls() {
    for seed in 1..3 {
        let (scene, client) = scene(seed);
        let before = at_drives(&client);
        let calls = read(&scene, &client, 0..FILES);
        assert!((3..=14).contains(&calls), "seed {seed}: {calls}");
        assert_eq!(at_drives(&client) - before, (FILES * LENGTH) as u64, "seed {seed}");
        assert_eq!(scene.hosts[0].served.counts().refused, [0; 8], "seed {seed}");
    }
}

#[test]
fn a_client_that_reads_two_files_asks_for_no_others() {
    let (scene, client) = scene(3);
    assert_eq!(read(&scene, &client, 0..2), 2);
    assert_eq!(read(&scene, &client, 2..3), 1);
    assert_eq!(read(&scene, &client, 3..5), 0, "they came with the third");
}

/// What came with another file is not good for a later version.
#[test]
fn a_layout_that_came_with_another_file_ends_as_any() {
    let (scene, client) = scene(4);
    read(&scene, &client, 0..3);
    scene.put(&path(3), pattern(LENGTH, 1003));
    let got = scene.get(&client, &path(3)).unwrap();
    assert!(got == pattern(LENGTH, 1003));
    // The one beside it is as it was.
    let before = (client.calls("GetLayout"), at_drives(&client));
    assert!(scene.get(&client, &path(4)).unwrap() == pattern(LENGTH, 4));
    assert_eq!((client.calls("GetLayout"), at_drives(&client)), (before.0, before.1 + LENGTH as u64));
}

/// A reply with more outcomes than files, or fewer: which is whose is not known, and nobody waits for those that are not there.
#[test]
fn a_reply_with_another_number_of_outcomes_is_good_for_no_file() {
    for number in [0, 1, 4, 30] {
        let calls: FileCalls = Arc::new(move |table| {
            table.call(move |_, _, _: GetLayout| async move {
                let outcomes = (0..number).map(|_| LayoutOutcome::from(Err(AbortCode::RXGEN_OPCODE)));
                Ok::<_, AbortCode>(GetLayoutReply { outcomes: LayoutOutcomes::first_of(outcomes) })
            })
        });
        let (scene, client) = scene_with(6, calls, 12);
        let began = scene.cell.sim.now();
        // One of the first two and that of each other is asked for, or refused a moment ago; the bytes come from the file server.
        let calls = read(&scene, &client, 0..12);
        assert!(calls >= 2, "{number}: {calls}");
        assert!(scene.cell.sim.now() - began < Duration::from_secs(2), "{number}: nobody waits");
        assert_eq!(
            fallbacks(&client, "no_layout"),
            0,
            "{number}: {:?}",
            client.venus.counters().drive_fallbacks
        );
    }
}
