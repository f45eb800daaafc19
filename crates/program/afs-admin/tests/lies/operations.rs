//! Operations of the tool in which the server that lies has a part.

use std::pin::Pin;

use afs_admin::{
    Admin, AdminResult, CheckDirection, CheckOptions, CopyOptions, CreateOptions, DumpOptions, GivenUp,
    MoveOptions, Overwrite, ReleaseOptions, RemoveOptions, RestoreOptions, ServerPartition,
};
use afs_sim::SimRng;
use afs_wire::ids::UnixSeconds;

use super::lying;
use crate::real::cell::place;
use crate::real::dumps::MemoryDump;

/// Work of the tool, whatever comes of it.
pub type Work = Box<dyn FnOnce(Admin) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// Number of operations.
pub const OPERATIONS: u64 = 14;

fn work<F>(run: impl FnOnce(Admin) -> F + Send + 'static) -> Work
where
    F: Future<Output = AdminResult> + Send + 'static,
{
    Box::new(move |admin| {
        let run = run(admin);
        Box::pin(async move { drop(run.await) })
    })
}

/// One of the operations. The volume `moved` is moved between honest servers and copied to the other one; `lied` lives there.
pub fn operation(kind: u64, turn: u32, rng: &mut SimRng) -> Work {
    let honest = place(rng.between(0, 1) as u8, rng.between(0, 1) as u8);
    let there = lying(rng.between(0, 1) as u8);
    let new = format!("new{turn}");
    match kind {
        0 => work(move |admin| async move { create(&admin, new, there).await }),
        1 => work(move |admin| async move { move_to(&admin, "moved", honest).await }),
        2 => work(move |admin| async move { move_to(&admin, "lied", honest).await }),
        3 => work(move |admin| async move { move_to(&admin, "lied", there).await }),
        4 => work(move |admin| async move { copy(&admin, "moved", new, there).await }),
        5 => work(move |admin| async move { copy(&admin, "lied", new, honest).await }),
        6 => work(move |admin| async move { released(&admin, "moved", there).await }),
        7 => work(move |admin| async move { released(&admin, "lied", honest).await }),
        8 => work(|admin| async move { admin.backup("lied").await.map(drop) }),
        9 => work(move |admin| async move { dumped_and_restored(&admin, new, honest).await }),
        10 => work(move |admin| async move { looked_at(&admin, there).await }),
        11 => work(|admin| async move { admin.check(&everything()).await.map(drop) }),
        12 => work(move |admin| async move { admin.create_snapshot("lied", &new).await.map(drop) }),
        _ => work(move |admin| async move { removed(&admin, there).await }),
    }
}

async fn create(admin: &Admin, name: String, place: ServerPartition) -> AdminResult {
    admin.create(CreateOptions { name, place, quota: 0, id: None }).await.map(drop)
}

async fn move_to(admin: &Admin, volume: &str, to: ServerPartition) -> AdminResult {
    let options = MoveOptions { volume: volume.into(), from: None, to, live: false, drop_snapshots: false };
    admin.move_volume(options).await.map(drop)
}

async fn copy(admin: &Admin, volume: &str, name: String, to: ServerPartition) -> AdminResult {
    let volume = volume.into();
    let options = CopyOptions {
        volume,
        name,
        to,
        id: None,
        incremental: false,
        read_only: false,
        offline: false,
        live: false,
        shadow: false,
    };
    admin.copy_volume(options).await.map(drop)
}

async fn released(admin: &Admin, volume: &str, copy: ServerPartition) -> AdminResult {
    drop(admin.add_site(volume, copy, false).await);
    admin.release(ReleaseOptions { volume: volume.into(), force: false, back_out: false }).await.map(drop)
}

async fn dumped_and_restored(admin: &Admin, name: String, place: ServerPartition) -> AdminResult {
    let options = DumpOptions {
        volume: "lied".into(),
        place: None,
        since: UnixSeconds(0),
        clone: true,
        omit_directories: false,
    };
    let mut dump = MemoryDump::default();
    admin.dump(&options, &mut dump).await?;
    let options = RestoreOptions {
        name,
        place,
        id: None,
        overwrite: Overwrite::Refuse,
        read_only: false,
        offline: false,
        creation: None,
        last_update: None,
        keep_old: false,
    };
    admin.restore(&options, &mut MemoryDump::new(dump.bytes)).await.map(drop)
}

async fn looked_at(admin: &Admin, there: ServerPartition) -> AdminResult {
    drop(admin.volumes_on(there).await);
    drop(admin.status(there.server).await);
    drop(admin.snapshots("lied").await);
    drop(admin.partition_state(there).await);
    admin.size_of("lied", UnixSeconds(0)).await.map(drop)
}

fn everything() -> CheckOptions {
    CheckOptions {
        server: None,
        volume: None,
        direction: CheckDirection::Both,
        repair: true,
        given_up: GivenUp::default(),
    }
}

async fn removed(admin: &Admin, there: ServerPartition) -> AdminResult {
    let listed = admin.volumes_on(there).await?;
    for info in listed.iter().take(2) {
        drop(admin.zap(there, info.id, false).await);
    }
    let options = RemoveOptions { volume: "lied".into(), place: None, snapshots: true };
    admin.remove(options).await.map(drop)
}
