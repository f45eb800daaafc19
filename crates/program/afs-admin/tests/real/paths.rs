//! Moves, releases, copies, dumps and restores by the data path: as by calls, whatever breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use afs_admin::{
    Admin, AdminResult, CopyOptions, CreateOptions, DumpOptions, MoveOptions, Moved, Overwrite, PathUse,
    ReleaseOptions, RestoreOptions,
};
use afs_sim::{NodeId, Seen, StreamFault, StreamMishap};
use afs_wire::ids::VolumeId;
use afs_wire::rpc::Request;
use afs_wire::vol::{DumpByPath, GetSize};

use super::cell::{Cell, place};
use super::content::{Content, content, write};
use super::dumps::MemoryDump;

/// A frame of the data path with all the bytes that it may have.
const FRAME: u64 = (256 << 10) + 12;

/// A volume of more than a mebibyte on the first of some servers with data paths.
struct Scene {
    cell: Cell,
    volume: VolumeId,
    content: Content,
}

impl Scene {
    fn new(seed: u64, servers: u8) -> Self {
        let large: Vec<u8> = (0..1_100_000u32).map(|n| (n * 7 + n / 251) as u8).collect();
        Self::with(seed, servers, &large)
    }

    /// With a file of these bytes and a small one.
    fn with(seed: u64, servers: u8, large: &[u8]) -> Self {
        let cell = Cell::with_path(seed, servers);
        let options = CreateOptions { name: "v".into(), place: place(0, 0), quota: 0, id: None };
        let volume = cell.run(|admin| async move { admin.create(options).await }).unwrap();
        write(&cell, place(0, 0), volume, "large", large);
        write(&cell, place(0, 0), volume, "small", b"a few words");
        let content = content(&cell, place(0, 0), volume);
        Scene { cell, volume, content }
    }

    fn node(&self, server: usize) -> NodeId {
        self.cell.servers[server].node
    }

    fn move_it(&self) -> AdminResult<Moved> {
        self.cell.run(|admin| async move { admin.move_volume(to_the_second()).await })
    }

    fn streams(&self) -> Vec<u64> {
        (0..self.cell.servers.len()).map(|server| self.cell.streams(server)).collect()
    }

    /// Checks that the volume is on one server, whole and on line, and that nothing else is left. Returns which.
    fn is_whole_on(&self, what: &str) -> u8 {
        let found = self.cell.run(|admin| async move {
            let entries = admin.entries(&Default::default()).await?;
            let home = entries[0].sites[0].server;
            admin.check(&Default::default()).await.map(|checked| (entries.len(), home, checked.findings))
        });
        let (entries, home, findings) = found.unwrap();
        assert_eq!((entries, findings), (1, Vec::new()), "{what}");
        let server = home.octets()[3] - 2;
        let at = place(server, 0);
        assert!(self.cell.store(at).volume(self.volume).unwrap().header().online, "{what}: off line");
        assert!(content(&self.cell, at, self.volume) == self.content, "{what}: other content");
        server
    }
}

fn to_the_second() -> MoveOptions {
    MoveOptions { volume: "v".into(), from: None, to: place(1, 0), live: false, drop_snapshots: false }
}

#[test]
fn a_volume_moves_by_the_data_path() {
    let scene = Scene::new(501, 2);
    scene.move_it().unwrap();
    assert_eq!(scene.is_whole_on("moved"), 1);
    assert!(scene.streams()[1] >= 1, "{:?}", scene.streams());
}

#[test]
fn releases_and_copies_go_by_the_data_path_to_each_of_their_servers() {
    let scene = Scene::new(502, 3);
    for server in [1, 2] {
        scene
            .cell
            .run(move |admin| async move { admin.add_site("v", place(server, 0), false).await })
            .unwrap();
    }
    let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
    scene.cell.run(|admin| async move { admin.release(options).await }).unwrap();
    assert_eq!(scene.streams(), [0, 1, 1]);
    for server in [1, 2] {
        let copy = scene.cell.volumes(place(server, 0))[0];
        assert!(content(&scene.cell, place(server, 0), copy) == scene.content);
    }
    let copied = scene.cell.run(|admin| async move {
        let (volume, name, to) = ("v".into(), "w".into(), place(2, 1));
        let (read_only, offline, live, shadow, incremental) = (false, false, false, false, false);
        let options =
            CopyOptions { volume, name, to, read_only, offline, live, shadow, id: None, incremental };
        admin.copy_volume(options).await
    });
    let copy = copied.unwrap().volume;
    assert!(content(&scene.cell, place(2, 1), copy) == scene.content);
    assert!(scene.streams()[2] >= 2);
}

/// The data path may break at any byte: the dump is sent again by a call, within the same step.
#[test]
fn a_stream_that_is_cut_is_sent_again_by_a_call() {
    let mut cuts =
        vec![0, 1, 11, 12, 60, 184, 185, 240, 300, FRAME, FRAME + 250, 2 * FRAME + 300, 4 * FRAME + 100];
    let mut random = 12345u64;
    for _ in 0..6 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        cuts.push(random >> 44);
    }
    for (case, after) in cuts.into_iter().enumerate() {
        let mishap = if case % 4 == 3 { StreamMishap::Silence } else { StreamMishap::Reset };
        let scene = Scene::new(510 + case as u64, 2);
        scene.cell.sim.break_stream(scene.node(0), scene.node(1), StreamFault { after, mishap });
        let what = format!("{mishap:?} after {after}");
        scene.move_it().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(scene.is_whole_on(&what), 1);
    }
}

#[test]
fn a_reply_that_is_cut_costs_nothing_either() {
    for after in [0, 5, 80, 100] {
        let scene = Scene::new(530 + after, 2);
        let fault = StreamFault { after, mishap: StreamMishap::Reset };
        scene.cell.sim.break_stream(scene.node(1), scene.node(0), fault);
        scene.move_it().unwrap();
        assert_eq!(scene.is_whole_on("cut"), 1);
    }
}

/// One of two destinations loses its stream; both get the volume.
#[test]
fn a_release_goes_on_by_a_call_where_its_stream_is_cut() {
    for after in [200, FRAME + 300, 900_000] {
        let scene = Scene::new(540 + after % 7, 3);
        for server in [1, 2] {
            scene
                .cell
                .run(move |admin| async move { admin.add_site("v", place(server, 0), false).await })
                .unwrap();
        }
        let fault = StreamFault { after, mishap: StreamMishap::Reset };
        scene.cell.sim.break_stream(scene.node(0), scene.node(1), fault);
        let options = ReleaseOptions { volume: "v".into(), ..ReleaseOptions::default() };
        let released = scene.cell.run(|admin| async move { admin.release(options).await }).unwrap();
        assert_eq!(released.sites.len(), 2, "{after}");
        for server in [1, 2] {
            let copy = scene.cell.volumes(place(server, 0))[0];
            assert!(content(&scene.cell, place(server, 0), copy) == scene.content, "{after}");
        }
        assert_eq!(scene.streams(), [0, 0, 1]);
    }
}

/// `ANDREW_PATH_STRIDE` is the number of events from one crash to the next.
#[test]
fn whoever_dies_in_the_middle_leaves_a_whole_volume_here_or_there() {
    let stride = std::env::var("ANDREW_PATH_STRIDE").ok().and_then(|v| v.parse().ok()).unwrap_or(149);
    let mut came = [0, 0];
    for victim in [0, 1] {
        let mut event = 1 + 20 * victim;
        while let Some(server) = die(victim, event) {
            came[usize::from(server)] += 1;
            event += stride;
        }
    }
    assert!(came.iter().all(|count| *count > 0), "here and there: {came:?}");
}

/// Where the volume is after a crash at an event; `None` if the move had ended before.
fn die(victim: usize, event: usize) -> Option<u8> {
    let scene = Scene::new(550, 2);
    let cell = &scene.cell;
    let done = Arc::new(AtomicBool::new(false));
    let (admin, ended) = (cell.admin(), done.clone());
    cell.sim.env(cell.tool).spawn(Box::pin(async move {
        let _ = admin.move_volume(to_the_second()).await;
        ended.store(true, Ordering::Relaxed);
    }));
    let mut events = 0;
    let _ = cell.sim.run_until(Duration::from_secs(600), || {
        events += 1;
        events >= event || done.load(Ordering::Relaxed)
    });
    if done.load(Ordering::Relaxed) {
        return None;
    }
    cell.crash(scene.node(victim));
    let _ = cell.sim.run_until(Duration::from_secs(1200), || done.load(Ordering::Relaxed));
    cell.wait_until_quiet();
    // Transactions that no tool resumes end, and unfinished states are deleted, in the background.
    cell.sim.run_for(Duration::from_secs(700));
    Some(scene.is_whole_on(&format!("server {victim} dies at event {event}")))
}

fn tape(scene: &Scene, path: PathUse) -> Vec<u8> {
    let options = DumpOptions { volume: "v".into(), ..DumpOptions::default() };
    let dump = move |admin: Admin| async move {
        let mut tape = MemoryDump::default();
        admin.with_path(path).dump(&options, &mut tape).await.map(|dumped| (tape.bytes, dumped.bytes))
    };
    let (bytes, told) = scene.cell.run(dump).unwrap();
    assert_eq!(bytes.len() as u64, told);
    bytes
}

fn restore(scene: &Scene, bytes: Vec<u8>) {
    let options = RestoreOptions {
        name: "w".into(),
        place: place(1, 0),
        id: None,
        overwrite: Overwrite::Full,
        read_only: false,
        offline: false,
        creation: None,
        last_update: None,
        keep_old: false,
    };
    let restored = scene.cell.run(|admin| async move {
        let mut tape = MemoryDump::new(bytes);
        admin.restore(&options, &mut tape).await
    });
    let copy = restored.unwrap().volume;
    assert!(content(&scene.cell, place(1, 0), copy) == scene.content);
}

#[test]
fn the_tools_dumps_and_restores_take_the_data_path() {
    let scene = Scene::new(560, 2);
    let by_call = tape(&scene, PathUse::Off);
    assert_eq!(scene.streams(), [0, 0]);
    assert!(tape(&scene, PathUse::Clear) == by_call, "other bytes");
    restore(&scene, by_call);
    assert_eq!(scene.streams(), [1, 1]);
}

/// Datagrams on the network that begin a call.
fn calls<R: Request>(seen: &[Seen]) -> usize {
    let is_first = |seen: &&Seen| seen.data.get(28..32) == Some(&R::OPCODE.to_be_bytes()[..]);
    seen.iter().filter(is_first).count()
}

#[test]
fn the_tool_asks_for_no_stream_for_a_small_volume() {
    for (bytes, streams) in [(50_000, 0), (100_000, 1)] {
        let scene = Scene::with(561, 2, &vec![7; bytes]);
        let tap = scene.cell.sim.tap();
        let dump = tape(&scene, PathUse::Clear);
        let seen = tap.take();
        assert!(calls::<GetSize>(&seen) >= 1, "{bytes} bytes");
        assert_eq!(calls::<DumpByPath>(&seen), streams, "{bytes} bytes");
        assert_eq!(scene.streams(), [streams as u64, 0]);
        restore(&scene, dump);
    }
}

#[test]
fn the_tools_dumps_and_restores_go_on_by_a_call() {
    for after in [0, 40, 230, FRAME + 100, 2 * FRAME + 400, 1_000_000] {
        let scene = Scene::new(570 + after % 11, 2);
        let by_call = tape(&scene, PathUse::Off);
        let mishap = if after % 2 == 0 { StreamMishap::Reset } else { StreamMishap::Silence };
        let fault = StreamFault { after, mishap };
        scene.cell.sim.break_stream(scene.node(0), scene.cell.tool, fault);
        assert!(tape(&scene, PathUse::Clear) == by_call, "other bytes after {after}");
        scene.cell.sim.break_stream(scene.cell.tool, scene.node(1), fault);
        restore(&scene, by_call);
    }
}
