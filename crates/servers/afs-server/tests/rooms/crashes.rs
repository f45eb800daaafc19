//! Crashes of a drive and of the file server at every step of a store at a drive, and during its commit.

use super::*;

/// What a client gives without and with commands of the file server.
const ROUTES: [DataRoute; 2] = [DataRoute::Commanded, DataRoute::Drives];

impl Scene {
    /// A file of a volume with a route.
    fn routed(seed: u64, route: DataRoute) -> (Self, Fid) {
        let (scene, fid) = Scene::commanded(seed);
        far::set_route(&scene.cell, fid.volume, route);
        (scene, fid)
    }

    /// A room for a file, with nothing in it.
    fn empty_room(&self, fid: Fid, route: DataRoute) {
        match route {
            DataRoute::Commanded => drop(self.commanded_room(fid, 3 * SLOT_LEN)),
            _ => drop(self.room(fid, 3 * SLOT_LEN, 2 * SLOT_LEN).unwrap()),
        }
    }

    /// One with two chunks in it.
    fn given(&self, fid: Fid, route: DataRoute) -> Staged {
        if route == DataRoute::Commanded { self.change(fid) } else { self.staged(fid) }
    }
}

/// Between any two steps of a store the drive, the server or the client ends. What the client then does is refused or done; the
/// file has what it had or what was committed; and no chunk is left that no file has.
#[test]
fn a_crash_between_two_steps_loses_nothing_and_leaves_nothing() {
    for (step, route) in (0..3).flat_map(|step| ROUTES.map(|route| (step, route))) {
        for victim in ["drive", "server", "client"] {
            let what = format!("{route:?}, {victim} after step {step}");
            let (mut scene, fid) = Scene::routed(9, route);
            let before = scene.settled();
            if step == 0 {
                scene.empty_room(fid, route);
            }
            let staged = (step > 0).then(|| scene.given(fid, route));
            if step == 2 {
                scene.commit(fid, staged.as_ref().unwrap()).unwrap();
            }
            match victim {
                "drive" => scene.restart_drive(2),
                "server" => scene.restart_server(),
                _ => {}
            }
            let (mut done, mut is_stale) = (step == 2, false);
            if step == 1 && victim != "client" {
                refused(scene.commit(fid, staged.as_ref().unwrap()), Errno::ESTALE.to_uae());
                is_stale = true;
            }
            if victim != "client" && !done {
                done = scene.commit(fid, &scene.given(fid, route)).is_ok();
                assert!(done, "{what}: the next attempt");
            }
            scene.settled();
            scene.restart_server();
            let after = scene.settled();
            let wanted = if done { committed() } else { content(0, 2 * SLOT) };
            assert!(scene.owner.read(fid) == wanted, "{what}, {is_stale}");
            let most = before + if done { 8192 } else { 0 };
            assert!(after <= most, "{what}: {before} {after}");
        }
    }
}

/// The same while the commit is in progress, at any moment of it.
#[test]
fn a_crash_during_a_commit_makes_all_of_it_or_nothing() {
    let mut outcomes = [0; 2];
    for victim in ["drive", "server"] {
        for (moment, route) in (0..14).zip(ROUTES.into_iter().cycle()) {
            let what = format!("{route:?}, {victim} after {moment}");
            let (mut scene, fid) = Scene::routed(10, route);
            let before = scene.settled();
            let staged = scene.given(fid, route);
            let (call, parts) = scene.call(fid, &staged);
            let told = begin(&scene.carol, call, &parts);
            scene.cell.sim.run_for(Duration::from_micros(250 * moment));
            match victim {
                "drive" => scene.restart_drive(2),
                _ => scene.restart_server(),
            }
            scene.cell.sim.run_for(Duration::from_secs(120));
            let is_told = matches!(*told.lock().unwrap(), Some(Ok(_)));
            let read = scene.owner.read(fid);
            let is_done = read == committed();
            assert!(is_done || read == content(0, 2 * SLOT), "{what}: all or nothing");
            assert!(is_done || !is_told, "{what}: an acknowledged store is lost");
            outcomes[usize::from(is_done)] += 1;
            scene.settled();
            scene.restart_server();
            let after = scene.settled();
            assert!(after <= before + 8192, "{what}: {before} {after}");
            assert!(scene.owner.read(fid) == read, "{what}");
        }
    }
    assert!(outcomes.iter().all(|count| *count > 3), "{outcomes:?}");
}

type Outcome = Arc<std::sync::Mutex<Option<CallResult<fs::StatusReply>>>>;

/// Begins a commit without waiting for it.
fn begin(client: &Client, call: Commit, parts: &[Part]) -> Outcome {
    let (call, tables) = call.request(parts);
    begin_call(client, call, tables)
}

pub fn begin_call<R: Request<Reply = fs::StatusReply>>(client: &Client, call: R, table: Vec<u8>) -> Outcome {
    let (connection, outcome) = (client.connection::<R>(), Outcome::default());
    let slot = outcome.clone();
    client.world.env(client.node).spawn(Box::pin(async move {
        let work = async move {
            let mut begun = connection.open(&call).await?;
            if begun.write(Bytes::from(table)).await.is_ok() {
                begun.finish_request()?;
            }
            begun.finish::<R>().await
        };
        let told = work.await;
        *slot.lock().unwrap() = Some(told);
    }));
    outcome
}
